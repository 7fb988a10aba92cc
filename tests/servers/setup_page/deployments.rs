//! The way from the page to "Try" on each kind of server, by the values of the page and the heading that it names.

use super::*;

/// A test for each deployment: the page names this heading of the guide; `prepare` is before the start.
macro_rules! deployments {
    ($($name:ident: $server:ident, $heading:literal $(, $prepare:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let mut setup = Setup::new(Server::$server, "en");
            $(let prepare: fn(&mut Setup) = $prepare; prepare(&mut setup);)?
            setup.set_up($heading);
        }
    )*};
}

deployments! {
    apache_with_mod_php: Apache, "Apache";
    apache_with_php_fpm_of_another_user: ApacheWithFastcgi, "Apache with FastCGI",
        |setup| setup.site.user = NOBODY;
    nginx: Nginx, "nginx";
    nginx_that_hides_the_header_of_comedor: Nginx, "nginx",
        |setup| setup.lines = "fastcgi_hide_header X-Powered-By;".to_owned();
    caddy: Caddy, "Caddy";
    lighttpd: Lighttpd, "lighttpd";
    subfolder: Apache, "Apache", |setup| setup.move_into("entreaulas/");
    https_with_redirects: CaddyWithTls, "Caddy", |setup| {
        let (address, port) = (setup.address(), free_port());
        setup.entry = Some(format!("http://school.example:{port}"));
        setup.lines = format!("http://school.example:{port} {{\n redir {address}{{uri}}\n}}");
        setup.insert("ini_set('session.cookie_secure', '1');");
    };
    open_basedir_and_disabled_functions: ApacheWithFastcgi, "Apache with FastCGI", |setup| {
        setup.site.user = NOBODY;
        let functions = "posix_geteuid,posix_getegid,ini_get,ini_set,get_included_files";
        setup.set_up_pool(format!(
            "php_admin_value[open_basedir] = {}\nphp_admin_value[disable_functions] = {functions}",
            setup.site.path().display(),
        ));
    };
    handlers_of_the_application_that_throw: Nginx, "nginx", |setup| {
        setup.insert("set_error_handler(function () { throw new Error('handler'); });
            set_exception_handler(function () { http_response_code(500); });
            ob_start(function ($text) { return $text; });");
    };
    script_with_an_error_of_its_own: Nginx, "nginx", |setup| {
        setup.change_script("switch (", "undefined(); switch (");
    };
}

#[test]
fn page_in_spanish() {
    let mut setup = Setup::new(Server::Apache, "es-ES,es");
    setup.serve(false);
    setup.open();
    let page = setup.shown();
    assert!(
        page.contains("Configurar comedor") && page.contains("\nUsuario\twww-data\n"),
        "{page}"
    );
    let values = setup.values();
    let before = setup.press_try();
    assert!(
        before.contains("red: Todavía responde el script"),
        "{before}"
    );
    setup.site.write("cgi/comedor.conf", &values);
    setup.serve(true);
    let results = setup.press_try();
    assert!(results.contains("green done: Todo funciona."), "{results}");
    assert_eq!(
        setup.browser.evaluate("document.documentElement.lang"),
        "es"
    );
}

#[test]
fn session_name_and_folder_set_by_code() {
    let mut setup = Setup::new(Server::Nginx, "en");
    let folder = setup.site.path().join("sessions/own");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display();
    setup.insert(&format!(
        "session_name('AULAS'); session_save_path('{folder}');
        ini_set('session.serialize_handler', 'php_serialize'); date_default_timezone_set('Atlantic/Canary');"
    ));
    let values = setup.set_up("nginx");
    let data = setup.site.path().join("data");
    assert_eq!(
        values,
        format!(
            "COMEDOR_SERVICE=service\nCOMEDOR_DATA_DIR={}\nCOMEDOR_SESSION_DIR={folder}\n\
            COMEDOR_SESSION_NAME=AULAS\nCOMEDOR_SESSION_FORMAT=php_serialize\nCOMEDOR_ACCESS=listed\n\
            COMEDOR_SCRIPT={}\nTZ=Atlantic/Canary\n",
            data.display(),
            setup.script().display(),
        )
    );
}

#[test]
fn sessions_in_redis_whose_password_is_hidden_and_copied() {
    let redis = Redis::new();
    redis.command(&["CONFIG", "SET", "requirepass", "secreto"]);
    let mut setup = Setup::new(Server::Nginx, "en");
    let path = redis.tcp("127.0.0.1", "?auth=secreto");
    setup.set_up_pool(format!(
        "php_admin_value[session.save_handler] = redis\n\
        php_admin_value[session.save_path] = \"{path}\"\nphp_admin_value[session.gc_maxlifetime] = 777"
    ));
    let values = setup.set_up("nginx");
    let expected = format!("COMEDOR_SESSION_DIR={path}\nCOMEDOR_SESSION_NAME=PHPSESSID\n");
    assert!(values.contains(&expected), "{values}");
    assert!(
        values.contains("COMEDOR_SESSION_LIFETIME=777\n"),
        "{values}"
    );
    setup
        .browser
        .evaluate("document.querySelector('body > details').open = true");
    let shown = setup.shown();
    assert!(
        !shown.contains("secreto") && shown.contains("Show the address of Redis"),
        "{shown}"
    );
    setup
        .browser
        .evaluate("document.querySelector('#lines summary').click()");
    setup.shows("auth=secreto");
}

#[test]
fn proxy_that_changes_host_needs_the_line_that_the_page_names() {
    let mut setup = Setup::new(Server::Nginx, "en");
    let mut proxy = Site::new();
    proxy.start_nginx_only(&format!(
        "server {{ listen 127.0.0.1:{}; location / {{ proxy_pass http://127.0.0.1:{}; }} }}",
        proxy.port, setup.site.port,
    ));
    let origin = format!("http://school.example:{}", proxy.port);
    setup.entry = Some(origin.clone());
    setup.serve(false);
    setup.open();
    let values = setup.enable();
    let line = format!("COMEDOR_TRUSTED_ORIGINS={origin}");
    let results = setup.press_try();
    assert!(
        results.contains("red: comedor takes this page for one of another site"),
        "{results}"
    );
    assert!(
        results.contains(&format!("add this line to comedor.conf: {line}\n")),
        "{results}"
    );
    setup
        .site
        .write("cgi/comedor.conf", &format!("{values}{line}\n"));
    // The service looks at its settings at most once a second.
    wait_until("the new setting", || !setup.press_try().contains("red: "));
    setup.all_green();
}
