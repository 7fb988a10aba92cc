//! What the page says of the application and its server, and what it advises.

use super::*;

#[test]
fn page_says_what_names_that_comedor_cannot_use_lead_to_and_where_the_guide_has_the_change() {
    for (language, note) in [
        (
            "en",
            "comedor cannot use these names (only A-Z a-z 0-9 . _ -, at most 250 characters): Colegio San José. Their \
            users would be without the API. Change them before you enable comedor: heading “Ids” of docs/files.md.",
        ),
        (
            "es",
            "comedor no puede usar estos nombres (solo A-Z a-z 0-9 . _ -, 250 caracteres como máximo): Colegio San José. \
            Sus usuarios se quedarían sin la API. Cámbialos antes de activar comedor: apartado «Nombres con espacios o \
            tildes» de la guía.",
        ),
    ] {
        let mut setup = Setup::new(Server::Apache, language);
        setup.serve(false);
        setup.open();
        setup.does_not_show("A-Z");
        let centre = setup.site.path().join("data/Centros/Colegio San José");
        fs::create_dir_all(centre.join("Aularios")).unwrap();
        setup.open();
        setup.shows(note);
    }
}

#[test]
fn page_at_another_path_names_the_change_by_which_comedor_answers_there() {
    for server in [
        Server::Apache,
        Server::ApacheWithFastcgi,
        Server::Nginx,
        Server::Lighttpd,
    ] {
        let mut setup = Setup::new(server, "en");
        let docroot = setup.site.path().join("docroot");
        fs::create_dir(docroot.join("school")).unwrap();
        fs::rename(docroot.join("api"), docroot.join("school/rest")).unwrap();
        let page = "school/rest/comedor-setup.php";
        setup.changed = Some(("/api/comedor", "/school/rest/comedor"));
        setup.serve(false);
        setup.log_in();
        setup.browser.open(&setup.url(page));
        let note = "comedor answers paths that end in /api/comedor.php, and /school/rest/comedor.php does not. In its \
            configuration for the web server (“4. Enable” of the guide names the file), write /school/rest/comedor \
            instead of /api/comedor in each line.";
        setup.shows(note);
        setup.enable();
        setup.all_green();
    }
}

#[test]
fn page_says_that_a_policy_of_the_site_stops_its_script() {
    let mut setup = Setup::new(Server::Nginx, "en");
    setup.lines = "add_header Content-Security-Policy \"script-src 'self'\" always;".to_owned();
    // A location with its own add_header would not inherit it.
    setup.serve(false);
    setup.open();
    setup.shows("The buttons do nothing: ");
    setup.shows("COMEDOR_SERVICE=service\n");
}

const NOT_FOR_IT: &str = "comedor is not for this application:";

#[test]
fn page_says_what_to_give_to_a_login_without_a_centre() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    let installer = "$_SESSION['auth_data'] = \
        ['permissions' => ['*', 'sysadmin:access', 'service:access']];";
    for code in [
        installer,
        "$_SESSION['auth_data']['service']['centro'] = '';",
    ] {
        setup.insert_after_login(code);
        setup.open();
        let shown = setup.shown();
        let advice = "give this user a centre, aularios (aulas) and the permissions service:access and \
            service:docente; then log in again";
        assert!(shown.contains(advice), "{code}: {shown}");
        assert!(!shown.contains(NOT_FOR_IT), "{code}: {shown}");
        assert!(!shown.contains("COMEDOR_SERVICE="), "{code}: {shown}");
    }
}

#[test]
fn page_says_that_an_application_has_no_aularios_yet() {
    let mut setup = Setup::new(Server::Apache, "en");
    let aularios = setup.site.path().join("data/Centros/centro1/Aularios");
    let remove = "foreach (glob('DATA/*.json') as $file) { unlink($file); }";
    setup.insert(&remove.replace("DATA", aularios.to_str().unwrap()));
    setup.serve(false);
    setup.open();
    setup.shows("There are no aularios below ");
    setup.shows("data/Centros. Create one in the application, and reload this page.");
    setup.does_not_show(NOT_FOR_IT);
    setup.does_not_show("COMEDOR_SERVICE=");
}

#[test]
fn page_refuses_applications_that_comedor_is_not_for() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("session_set_save_handler(new class extends SessionHandler {}, true);");
    setup.serve(false);
    setup.open();
    setup.shows(NOT_FOR_IT);
    setup.shows("kept by code of the application");
    setup.does_not_show("COMEDOR_SERVICE=");
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("if (false) { new PDO('sqlite:x'); }");
    setup.insert("while (ob_get_level()) { ob_end_clean(); } echo ' '; flush();");
    setup.serve(false);
    setup.log_in();
    let (_, body) = setup.site.curl(&[&setup.url("api/comedor-setup.php")]);
    assert!(
        body.contains("sends its answer without PHP’s output buffers"),
        "{body}"
    );
}

#[test]
fn page_shows_the_umask_of_php() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.insert("umask(0027);");
    setup.serve(false);
    setup.open();
    setup.shows("\numask\t0027\n");
}

#[test]
fn page_names_shared_hosting_where_php_owns_the_script() {
    let hosting = "Apache with FastCGI (if you are not root on this server: Shared hosting)";
    for (owner, is_named) in [(NOBODY, true), (0, false)] {
        let mut setup = Setup::new(Server::ApacheWithFastcgi, "en");
        setup.site.user = NOBODY;
        setup.serve(false);
        chown(setup.script(), Some(owner), None).unwrap();
        setup.open();
        let shown = setup.shown();
        assert!(shown.contains("Apache with FastCGI"), "{shown}");
        assert_eq!(shown.contains(hosting), is_named, "{shown}");
    }
}

#[test]
fn page_says_that_the_settings_file_is_for_another_application() {
    let mut setup = Setup::new(Server::Apache, "en");
    setup.serve(false);
    let data = setup.site.path().join("data").display().to_string();
    let script = setup.script().display().to_string();
    let other = "/var/www/otra/api/comedor.php";
    for (settings, named) in [
        (
            format!("COMEDOR_SCRIPT={script}\nCOMEDOR_DATA_DIR={data}\n"),
            None,
        ),
        (
            format!("COMEDOR_SCRIPT={other}\nCOMEDOR_DATA_DIR={data}\n"),
            Some(other),
        ),
        // As version 1.0.0 wrote it
        (format!("COMEDOR_DATA_DIR={data}/\n"), None),
        (
            "# COMEDOR_SCRIPT=/x\n COMEDOR_DATA_DIR = /DATA/otra\n".to_owned(),
            Some("/DATA/otra"),
        ),
        // An empty value is the default
        (
            format!("COMEDOR_SCRIPT=\nTZ=UTC\nCOMEDOR_DATA_DIR={data}\n"),
            None,
        ),
        (
            "COMEDOR_SCRIPT= \nCOMEDOR_DATA_DIR=\nTZ=UTC\n".to_owned(),
            None,
        ),
        (
            format!("COMEDOR_DATA_DIR=\nCOMEDOR_SCRIPT={other}\n"),
            Some(other),
        ),
    ] {
        setup.site.write("tmp/comedor.conf", &settings);
        setup.open();
        let shown = setup.shown();
        let note = "comedor.conf of this server is for another application";
        match named {
            Some(path) => assert!(shown.contains(&format!("{note} ({path}).")), "{shown}"),
            None => assert!(!shown.contains(note), "{settings}: {shown}"),
        }
    }
}
