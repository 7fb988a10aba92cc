// A client with types that openapi-typescript generates. Arguments: the address, the cookie of a login, one whose session is
// locked, and the address of a later version.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./openapi.js";

const [address, cookie, locked, later] = process.argv.slice(2) as [string, string, string, string];
const clientWith = (cookie: string, baseUrl = address) => createClient<paths>({ baseUrl, headers: { Cookie: cookie } });
const client = clientWith(cookie);
const [aulario, date, menu] = ["aula1", "2026-11-23", "vegetariano"];

type Failed = { error?: components["schemas"]["ErrorAnswer"]; response: Response };

function checkError(status: number, code: string, reason: string | undefined, { error, response }: Failed) {
  assert.deepEqual([response.status, error?.code, error?.reason], [status, code, reason]);
  assert.equal(response.headers.get("Retry-After"), code === "BUSY" ? "1" : null);
}

const types = await client.GET("/api/comedor.php/get_menu_types", { params: { query: { action: "get_menu_types", aulario } } });
assert.deepEqual(types.data?.menu_types.map((type) => type.id), ["basal", "vegetariano", "alergias"]);

const query = { action: "get_menu", aulario, date, menu } as const;
const { data: day } = await client.GET("/api/comedor.php/get_menu", { params: { query } });
assert.deepEqual([day?.date, day?.menu_type, day?.menu_types.length], [date, menu, 3]);
assert.equal(day?.menu.plates.primero?.name, "");

const { data: saved } = await client.POST("/api/comedor.php/save_menu", {
  params: { query: { action: "save_menu", aulario } },
  body: { date, menu_type: menu, plates: { primero: { name: "Piñas" }, extra: { name: "Pan" } } },
});
assert.equal(saved?.menu.plates.extra?.name, "Pan");
assert.deepEqual((await client.GET("/api/comedor.php/get_menu", { params: { query } })).data?.menu, saved?.menu);

const { data: added } = await client.POST("/api/comedor.php/add_menu_type", {
  params: { query: { action: "add_menu_type", aulario } },
  body: { id: "sin-sal", label: "Sin sal", color: "#ffc107" },
});
assert.deepEqual(added?.menu_type, { id: "sin-sal", label: "Sin sal", color: "#ffc107" });
const { data: renamed } = await client.POST("/api/comedor.php/rename_menu_type", {
  params: { query: { action: "rename_menu_type", aulario } },
  body: { id: "sin-sal", label: "Bajo en sal" },
});
assert.deepEqual(renamed?.menu_type, { id: "sin-sal", label: "Bajo en sal", color: "#ffc107" });
const deleteIt = () =>
  client.POST("/api/comedor.php/delete_menu_type", {
    params: { query: { action: "delete_menu_type", aulario } },
    body: { id: "sin-sal" },
  });
assert.ok((await deleteIt()).data?.success);

const read = (query: { aulario: string; date?: string }) =>
  client.GET("/api/comedor.php/get_menu", { params: { query: { action: "get_menu", ...query } } });
checkError(400, "INVALID_FORMAT", undefined, await read({ aulario, date: "2026-02-30" }));
checkError(403, "FORBIDDEN", "aulario", await read({ aulario: "aula2" }));
checkError(404, "NOT_FOUND", undefined, await deleteIt());
const busy = await clientWith(locked).GET("/api/comedor.php/get_menu", { params: { query } });
checkError(503, "BUSY", undefined, busy);

const laterClient = clientWith(cookie, later);
const typesOnly = { params: { query: { action: "get_menu_types", aulario } } } as const;
const laterTypes = await laterClient.GET("/api/comedor.php/get_menu_types", typesOnly);
assert.equal(laterTypes.data?.menu_types[0]?.id, "basal");
checkError(403, "CLOSED", "closed", await laterClient.GET("/api/comedor.php/get_menu", { params: { query } }));

// Wrong calls must not compile: the compiler reports an unused @ts-expect-error.
export async function wrong() {
  // @ts-expect-error: unknown action
  await client.GET("/api/comedor.php/get_menus", { params: { query } });
  // @ts-expect-error: a write is not a read
  await client.GET("/api/comedor.php/save_menu", { params: { query } });
  // @ts-expect-error: aulario is missing
  await client.GET("/api/comedor.php/get_menu", { params: { query: { action: "get_menu" } } });
  const path = "/api/comedor.php/save_menu";
  const params = { query: { action: "save_menu", aulario } } as const;
  // @ts-expect-error: plates are missing
  await client.POST(path, { params, body: { menu_type: "basal" } });
  // @ts-expect-error: the name of a plate is not a boolean
  await client.POST(path, { params, body: { menu_type: "basal", plates: { primero: { name: true } } } });
}
