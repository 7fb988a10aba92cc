// A function for a page of the application. The browser sends the cookie of the session.

const api = "/entreaulas/api/comedor.php"; // with the folder of the application

async function comedor(parameters, fields, attempts = 3) {
  const response = await fetch(api + "?" + new URLSearchParams(parameters), fields && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fields),
  });
  // The web server may reject a request itself, with an HTML page.
  const answer = (await response.json().catch(() => null)) ?? { error: `The server answered ${response.status}.` };
  if (answer.code === "BUSY" && attempts > 1) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * response.headers.get("Retry-After")));
    return comedor(parameters, fields, attempts - 1);
  }
  // A write may have been stored if the code is INTERNAL_ERROR or unknown, or there is none; never with a status 4xx.
  const { code, reason } = answer;
  if (!answer.success) throw Object.assign(new Error(answer.error), { status: response.status, code, reason });
  return answer;
}

/* Its use, in a module or an async function. This reads, overwrites a menu and deletes a type:

const aulario = "aula1", date = "2026-11-23";
const { menu_types } = await comedor({ action: "get_menu_types", aulario });
if (!menu_types.length) throw new Error("no menu type has an id");
const menu_type = menu_types[0].id;
const isAskedFor = (answer) => answer.date === date && answer.menu_type === menu_type;
const day = await comedor({ action: "get_menu", aulario, date, menu: menu_type });
if (!isAskedFor(day)) throw new Error("the answer is for another menu");
const plates = { primero: { name: "Lentejas" }, postre: { name: "Piña" } };
const saved = await comedor({ action: "save_menu", aulario }, { date, menu_type, plates });
if (!isAskedFor(saved)) throw new Error("another menu was saved");
try {
  await comedor({ action: "delete_menu_type", aulario }, { id: "sin-sal" });
} catch (error) {
  if (error.code !== "NOT_FOUND") throw error; // already deleted: the aulario was read above
}
*/
