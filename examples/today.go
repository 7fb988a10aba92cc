package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/url"

	"example/comedor"
)

const (
	site   = "https://school.example"
	school = site + "/entreaulas"
)

func main() {
	cookies, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: cookies}
	login, err := browser.PostForm(site+"/_login.php", url.Values{"user": {"…"}, "password": {"…"}})
	if err != nil {
		log.Fatal(err)
	}
	login.Body.Close()

	configuration := comedor.NewConfiguration()
	configuration.Servers = comedor.ServerConfigurations{{URL: school}}
	address, _ := url.Parse(school)
	for _, cookie := range cookies.Cookies(address) {
		if cookie.Name == "PHPSESSID" {
			configuration.AddDefaultHeader("Cookie", cookie.String())
		}
	}
	api := comedor.NewAPIClient(configuration).ComedorAPI
	day, _, err := api.GetMenu(context.Background()).Action("get_menu").Aulario("aula1").Menu("basal").Execute()
	if err != nil {
		log.Fatal(err)
	}
	if day.MenuType != "basal" {
		log.Fatal("the answer is for ", day.MenuType)
	}
	for _, key := range []string{"primero", "segundo", "postre"} {
		fmt.Printf("%s: %s\n", key, day.Menu.Plates[key].Name)
	}
}
