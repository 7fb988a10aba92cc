// The client of openapi-generator for Go. Arguments: the address, the cookie of a login, one whose session is locked, and
// the address of a later version.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"

	"example/comedor"
)

const (
	aulario = "aula1"
	date    = "2026-11-23"
)

var ctx = context.Background()

func apiWith(address, cookie string) *comedor.ComedorAPIService {
	configuration := comedor.NewConfiguration()
	configuration.Servers = comedor.ServerConfigurations{{URL: address}}
	configuration.AddDefaultHeader("Cookie", cookie)
	return comedor.NewAPIClient(configuration).ComedorAPI
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%v, not %v", found, expected))
	}
}

func equalType(found comedor.MenuType, fields ...string) {
	equal([]string{found.Id, found.Label, found.Color}, fields)
}

func checkError(status int, code, reason string, response *http.Response, err error) {
	var failed *comedor.GenericOpenAPIError
	if !errors.As(err, &failed) {
		panic(fmt.Sprintf("%s: %v", code, err))
	}
	answer := failed.Model().(comedor.ErrorAnswer)
	equal(response.StatusCode, status)
	equal([]string{answer.Code, answer.GetReason()}, []string{code, reason})
	equal(response.Header.Get("Retry-After") == "1", code == "BUSY")
}

func main() {
	api := apiWith(os.Args[1], os.Args[2])
	types, _, err := api.GetMenuTypes(ctx).Action("get_menu_types").Aulario(aulario).Execute()
	check(err)
	equal(types.MenuTypes[1].Id, "vegetariano")

	read := api.GetMenu(ctx).Action("get_menu").Aulario(aulario).Menu("vegetariano")
	day, _, err := read.Date(date).Execute()
	check(err)
	equal([]string{day.Date, day.MenuType, day.Menu.Plates["primero"].Name}, []string{date, "vegetariano", ""})
	equal(len(day.MenuTypes), 3)

	plates := map[string]comedor.PlateChange{"primero": {Name: "Piñas"}, "extra": {Name: "Pan"}}
	body := comedor.NewSaveMenuBody(date, "vegetariano", plates)
	saved, _, err := api.SaveMenu(ctx).Action("save_menu").Aulario(aulario).SaveMenuBody(*body).Execute()
	check(err)
	equal(saved.Menu.Plates["extra"].Name, "Pan")
	day, _, err = read.Date(date).Execute()
	check(err)
	equal(day.Menu, saved.Menu)

	add := comedor.NewAddMenuTypeBody("sin-sal", "Sin sal")
	add.SetColor("#ffc107")
	added, _, err := api.AddMenuType(ctx).Action("add_menu_type").Aulario(aulario).AddMenuTypeBody(*add).Execute()
	check(err)
	equalType(added.MenuType, "sin-sal", "Sin sal", "#ffc107")
	rename := comedor.NewRenameMenuTypeBody("sin-sal")
	rename.SetLabel("Bajo en sal")
	renamed, _, err := api.RenameMenuType(ctx).Action("rename_menu_type").Aulario(aulario).RenameMenuTypeBody(*rename).Execute()
	check(err)
	equalType(renamed.MenuType, "sin-sal", "Bajo en sal", "#ffc107")
	erase := api.DeleteMenuType(ctx).Action("delete_menu_type").Aulario(aulario)
	erase = erase.DeleteMenuTypeBody(*comedor.NewDeleteMenuTypeBody("sin-sal"))
	_, _, err = erase.Execute()
	check(err)

	_, response, err := read.Date("2026-02-30").Execute()
	checkError(400, "INVALID_FORMAT", "", response, err)
	_, response, err = read.Aulario("aula2").Execute()
	checkError(403, "FORBIDDEN", "aulario", response, err)
	_, response, err = erase.Execute()
	checkError(404, "NOT_FOUND", "", response, err)
	_, response, err = apiWith(os.Args[1], os.Args[3]).GetMenuTypes(ctx).Action("get_menu_types").Aulario(aulario).Execute()
	checkError(503, "BUSY", "", response, err)

	api = apiWith(os.Args[4], os.Args[2])
	types, _, err = api.GetMenuTypes(ctx).Action("get_menu_types").Aulario(aulario).Execute()
	check(err)
	equal(types.MenuTypes[0].Id, "basal")
	_, response, err = api.GetMenu(ctx).Action("get_menu").Aulario(aulario).Execute()
	checkError(403, "CLOSED", "closed", response, err)
}
