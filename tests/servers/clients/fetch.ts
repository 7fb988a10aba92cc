// The client of openapi-generator for TypeScript (fetch). Arguments: the address, the cookie of a login, one whose session
// is locked, and the address of a later version.
import assert from "node:assert/strict";
import * as comedor from "./comedor/index.js";

const [address, cookie, locked, later] = process.argv.slice(2) as [string, string, string, string];
const apiWith = (cookie: string, basePath = address) =>
  new comedor.ComedorApi(new comedor.Configuration({ basePath, headers: { Cookie: cookie } }));
const [aulario, date, menu] = ["aula1", "2026-11-23", "vegetariano"];

async function checkError(status: number, code: string, reason: string | undefined, answer: Promise<unknown>) {
  const error = await answer.then(() => assert.fail(code), (error) => error);
  assert.ok(error instanceof comedor.ResponseError, error);
  assert.equal(error.response.status, status);
  assert.equal(error.response.headers.get("Retry-After"), code === "BUSY" ? "1" : null);
  const typed: comedor.ErrorAnswer = comedor.ErrorAnswerFromJSON(await error.response.json());
  assert.deepEqual([typed.code, typed.reason], [code, reason]);
}

const api = apiWith(cookie);
const types = await api.getMenuTypes({ action: "get_menu_types", aulario });
assert.deepEqual(types.menuTypes.map((type) => type.id), ["basal", "vegetariano", "alergias"]);

const day = await api.getMenu({ action: "get_menu", aulario, date, menu });
assert.deepEqual([day.date, day.menuType, day.menuTypes.length], [date, menu, 3]);
assert.equal(day.menu.plates.primero?.name, "");

const plates = { primero: { name: "Piñas" }, extra: { name: "Pan" } };
// @ts-expect-error Without a date, today's menu would be changed.
const forgotten: comedor.SaveMenuBody = { menuType: menu, plates };
assert.equal(forgotten.date, undefined);
const saved = await api.saveMenu({ action: "save_menu", aulario, saveMenuBody: { date, menuType: menu, plates } });
assert.equal(saved.menu.plates.extra?.name, "Pan");
assert.deepEqual((await api.getMenu({ action: "get_menu", aulario, date, menu })).menu, saved.menu);

const addMenuTypeBody = { id: "sin-sal", label: "Sin sal", color: "#ffc107" };
const added = await api.addMenuType({ action: "add_menu_type", aulario, addMenuTypeBody });
assert.deepEqual(added.menuType, addMenuTypeBody);
const renameMenuTypeBody = { id: "sin-sal", label: "Bajo en sal" };
const renamed = await api.renameMenuType({ action: "rename_menu_type", aulario, renameMenuTypeBody });
assert.deepEqual(renamed.menuType, { ...addMenuTypeBody, label: "Bajo en sal" });
const deleting: comedor.DeleteMenuTypeRequest = { action: "delete_menu_type", aulario, deleteMenuTypeBody: { id: "sin-sal" } };
assert.ok((await api.deleteMenuType(deleting)).success);

await checkError(400, "INVALID_FORMAT", undefined, api.getMenu({ action: "get_menu", aulario, date: "2026-02-30" }));
await checkError(403, "FORBIDDEN", "aulario", api.getMenu({ action: "get_menu", aulario: "aula2" }));
await checkError(404, "NOT_FOUND", undefined, api.deleteMenuType(deleting));
await checkError(503, "BUSY", undefined, apiWith(locked).getMenuTypes({ action: "get_menu_types", aulario }));

const laterApi = apiWith(cookie, later);
const laterTypes = await laterApi.getMenuTypes({ action: "get_menu_types", aulario });
assert.equal(laterTypes.menuTypes[0]?.id, "basal");
await checkError(403, "CLOSED", "closed", laterApi.getMenu({ action: "get_menu", aulario }));
