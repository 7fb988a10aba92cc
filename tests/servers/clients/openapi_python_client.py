"""The client of openapi-python-client. Arguments: the address, the cookie of a login, one whose session is locked,
and the address of a later version."""

import sys

from comedor_client import Client
from comedor_client.api.comedor import add_menu_type, delete_menu_type, get_menu, get_menu_types, rename_menu_type, save_menu
from comedor_client.models import (
    AddMenuTypeBody, DeleteMenuTypeBody, ErrorAnswer, GetMenuAnswer, GetMenuTypesAnswer, MenuTypeAnswer, PlateChange,
    RenameMenuTypeBody, SaveMenuAnswer, SaveMenuBody, SaveMenuBodyPlates,
)
from comedor_client.types import UNSET

address, cookie, locked, later = sys.argv[1:]
DATE = "2026-11-23"


def client_with(cookie, address=address):
    return Client(base_url=address, headers={"Cookie": cookie}, timeout=30)


def check_error(code, reason, error):
    assert isinstance(error, ErrorAnswer), error
    assert (error.code, error.reason) == (code, reason), error


to_aula1 = {"client": client_with(cookie), "aulario": "aula1"}

types = get_menu_types.sync(**to_aula1)
assert isinstance(types, GetMenuTypesAnswer)
assert [type.id for type in types.menu_types] == ["basal", "vegetariano", "alergias"]

day = get_menu.sync(**to_aula1, date=DATE, menu="vegetariano")
assert isinstance(day, GetMenuAnswer)
assert (day.date, day.menu_type, len(day.menu_types)) == (DATE, "vegetariano", 3)
assert day.menu.plates["primero"].name == ""

plates = SaveMenuBodyPlates()
plates["primero"] = PlateChange(name="Piñas")
plates["extra"] = PlateChange(name="Pan")
saved = save_menu.sync(**to_aula1, body=SaveMenuBody(date=DATE, menu_type="vegetariano", plates=plates))
assert isinstance(saved, SaveMenuAnswer)
assert saved.menu.plates["extra"].name == "Pan"
assert get_menu.sync(**to_aula1, date=DATE, menu="vegetariano").menu == saved.menu

added = add_menu_type.sync(**to_aula1, body=AddMenuTypeBody(id="sin-sal", label="Sin sal", color="#ffc107"))
assert isinstance(added, MenuTypeAnswer)
assert added.menu_type.id == "sin-sal"
renamed = rename_menu_type.sync(**to_aula1, body=RenameMenuTypeBody(id="sin-sal", label="Bajo en sal"))
assert (renamed.menu_type.label, renamed.menu_type.color) == ("Bajo en sal", "#ffc107")
delete = DeleteMenuTypeBody(id="sin-sal")
assert delete_menu_type.sync(**to_aula1, body=delete).success

check_error("INVALID_FORMAT", UNSET, get_menu.sync(**to_aula1, date="2026-02-30"))
forbidden = get_menu.sync(client=to_aula1["client"], aulario="aula2")
check_error("FORBIDDEN", "aulario", forbidden)
check_error("NOT_FOUND", UNSET, delete_menu_type.sync(**to_aula1, body=delete))
busy = get_menu_types.sync_detailed(client=client_with(locked), aulario="aula1")
check_error("BUSY", UNSET, busy.parsed)
assert busy.headers["Retry-After"] == "1"

later_client = client_with(cookie, later)
assert [type.id for type in get_menu_types.sync(client=later_client, aulario="aula1").menu_types] == ["basal"]
check_error("CLOSED", "closed", get_menu.sync(client=later_client, aulario="aula1"))
