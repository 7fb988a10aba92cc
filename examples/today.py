import http.cookiejar
import sys
import urllib.parse
import urllib.request

import comedor
import urllib3

site = "https://school.example"
school = f"{site}/entreaulas"
cookies = http.cookiejar.CookieJar()
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(cookies))
browser.open(f"{site}/_login.php", urllib.parse.urlencode({"user": "…", "password": "…"}).encode())
cookie = "; ".join(f"{cookie.name}={cookie.value}" for cookie in cookies if cookie.name == "PHPSESSID")

# Repeats an answer with Retry-After, as BUSY, after that time. A proxy's can follow a stored write: only for reads.
retries = urllib3.Retry(2, read=False, other=False, allowed_methods=None, raise_on_status=False)
api = comedor.ComedorApi(comedor.ApiClient(comedor.Configuration(host=school, retries=retries), cookie=cookie))
day = api.get_menu("get_menu", "aula1", menu="basal")
if day.menu_type != "basal":
    sys.exit(f"the answer is for {day.menu_type}")
for key, plate in day.menu.plates.items():
    print(f"{key}: {plate.name}")
