"""The client of openapi-generator for Python. Arguments: the address, the cookie of a login, one whose session is locked,
and the address of a later version."""

import sys

import comedor
from comedor import AddMenuTypeBody, DeleteMenuTypeBody, PlateChange, RenameMenuTypeBody, SaveMenuBody
from comedor.exceptions import ApiException, BadRequestException, ForbiddenException, NotFoundException, ServiceException

address, cookie, locked, later = sys.argv[1:]
DATE = "2026-11-23"


def api_with(cookie, address=address):
    return comedor.ComedorApi(comedor.ApiClient(comedor.Configuration(host=address), cookie=cookie))


def check_error(kind, code, reason, call):
    try:
        call()
    except ApiException as error:
        assert isinstance(error, kind), error
        assert isinstance(error.data, comedor.ErrorAnswer), error
        assert (error.data.code, error.data.reason) == (code, reason), error
        assert (error.headers.get("Retry-After") == "1") == (code == "BUSY")
    else:
        raise AssertionError(code)


api = api_with(cookie)
types = api.get_menu_types("get_menu_types", "aula1").menu_types
assert [type.id for type in types] == ["basal", "vegetariano", "alergias"]

day = api.get_menu("get_menu", "aula1", DATE, "vegetariano")
assert (day.var_date, day.menu_type, len(day.menu_types)) == (DATE, "vegetariano", 3)
assert day.menu.plates["primero"].name == ""

plates = {"primero": PlateChange(name="Piñas"), "extra": PlateChange(name="Pan")}
saved = api.save_menu("save_menu", "aula1", SaveMenuBody(date=DATE, menu_type="vegetariano", plates=plates))
assert saved.menu.plates["extra"].name == "Pan"
assert api.get_menu("get_menu", "aula1", var_date=DATE, menu="vegetariano").menu == saved.menu

added = api.add_menu_type("add_menu_type", "aula1", AddMenuTypeBody(id="sin-sal", label="Sin sal", color="#ffc107"))
assert added.menu_type.id == "sin-sal"
renamed = api.rename_menu_type("rename_menu_type", "aula1", RenameMenuTypeBody(id="sin-sal", label="Bajo en sal"))
assert (renamed.menu_type.label, renamed.menu_type.color) == ("Bajo en sal", "#ffc107")
assert api.delete_menu_type("delete_menu_type", "aula1", DeleteMenuTypeBody(id="sin-sal")).success

delete = DeleteMenuTypeBody(id="sin-sal")
check_error(BadRequestException, "INVALID_FORMAT", None, lambda: api.get_menu("get_menu", "aula1", "2026-02-30"))
check_error(ForbiddenException, "FORBIDDEN", "aulario", lambda: api.get_menu("get_menu", "aula2"))
check_error(NotFoundException, "NOT_FOUND", None, lambda: api.delete_menu_type("delete_menu_type", "aula1", delete))
check_error(ServiceException, "BUSY", None, lambda: api_with(locked).get_menu_types("get_menu_types", "aula1"))

api = api_with(cookie, later)
assert [type.id for type in api.get_menu_types("get_menu_types", "aula1").menu_types] == ["basal"]
check_error(ForbiddenException, "CLOSED", "closed", lambda: api.get_menu("get_menu", "aula1"))
