// A client with types that openapi-typescript generates from openapi.yaml.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./build/openapi.js";

const [baseUrl, session] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Cookie: `PHPSESSID=${session}` } });

// Plain operations: the answer has one of several types, distinguished by its properties.
const { data, error } = await client.GET("/api/comedor.php", {
  params: { query: { action: "get_menu", aulario: "aula1", date: "2026-11-23" } },
});
assert.ok(!error && "menu" in data);
assert.equal(data.menu.plates.primero.name, "");

// With the schema Actions, each action has its own types.
type Actions = components["schemas"]["Actions"];
type Read = "get_menu_types" | "get_menu";
type Write = Exclude<keyof Actions, Read>;
type Refusal<A extends keyof Actions> = Actions[A]["refusal"] | "FORBIDDEN" | "NOT_FOUND" | "TOO_LARGE" | "BUSY" | "INTERNAL_ERROR";
type Answer<A extends keyof Actions> = Actions[A]["answer"] | { success: false; error: string; code: Refusal<A> };

async function read<A extends Read>(action: A, aulario: string, query: Actions[A]["query"]): Promise<Answer<A>> {
  const { data, error } = await client.GET("/api/comedor.php", { params: { query: { action, aulario, ...query } } });
  return (data ?? error) as Answer<A>;
}

async function write<A extends Write>(action: A, aulario: string, body: Actions[A]["body"]): Promise<Answer<A>> {
  const { data, error } = await client.POST("/api/comedor.php", { params: { query: { action, aulario } }, body });
  return (data ?? error) as Answer<A>;
}

const types = await read("get_menu_types", "aula1", {});
assert.ok(types.success);
assert.deepEqual(types.menu_types.map((type) => type.id), ["basal", "vegetariano", "alergias"]);

const added = await write("add_menu_type", "aula1", { id: "sin-sal", label: "Menú sin sal", color: "#ffc107" });
assert.ok(added.success);
assert.deepEqual(added.menu_type, { id: "sin-sal", label: "Menú sin sal", color: "#ffc107" });

const again = await write("add_menu_type", "aula1", { id: "sin-sal", label: "Menú sin sal" });
assert.ok(!again.success && again.code === "DUPLICATE", JSON.stringify(again));

const renamed = await write("rename_menu_type", "aula1", { id: "sin-sal", label: "Bajo en sal" });
assert.ok(renamed.success && renamed.menu_type.label === "Bajo en sal");

const plates = { primero: { name: "Lentejas" }, extra: { name: "Pan" } };
const saved = await write("save_menu", "aula1", { date: "2026-11-23", menu_type: "sin-sal", plates });
assert.ok(saved.success && saved.menu.plates.extra.name === "Pan");

const menu = await read("get_menu", "aula1", { date: "2026-11-23", menu: "sin-sal" });
assert.ok(menu.success);
assert.deepEqual(menu.menu, saved.menu);

const deleted = await write("delete_menu_type", "aula1", { id: "sin-sal" });
assert.ok(deleted.success);

// Wrong calls must not compile: the compiler reports an unused @ts-expect-error.
export async function wrong() {
  // @ts-expect-error: unknown action
  await read("get_menus", "aula1", {});
  // @ts-expect-error: a write is not a read
  await read("save_menu", "aula1", {});
  // @ts-expect-error: label is missing
  await write("add_menu_type", "aula1", { id: "x" });
  // @ts-expect-error: the name of a plate is not a boolean
  await write("save_menu", "aula1", { menu_type: "basal", plates: { primero: { name: true } } });
  // @ts-expect-error: neither label nor colour
  await write("rename_menu_type", "aula1", { id: "x" });
  // @ts-expect-error: this action does not have this code
  if (!deleted.success && deleted.code === "DUPLICATE") return;
  // @ts-expect-error: aulario is missing
  await client.GET("/api/comedor.php", { params: { query: { action: "get_menu" } } });
}
