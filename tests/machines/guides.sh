# Every command below the heading $HEADING of docs/install.md, docs/install-special.md or docs/troubleshooting.md.
set -euo pipefail
. tests/machines/guide.sh
blocks docs/install.md docs/install-special.md docs/troubleshooting.md
for block in /tmp/blocks/*; do
    heading=$(basename "${block%.*}")
    grep -qF "\"$heading\"" tests/machines/deploy.rs || { echo "no test of this heading: $heading" && exit 1; }
done

# Everything of comedor on this machine, but for the repository and the PHP script.
everything() { find /DATA /etc /opt /usr /var -xdev -name '*comedor*' ! -path '/var/www/*' | sort; }
nothing_remains() {
    local new
    new=$(comm -13 /tmp/before <(everything))
    [ -z "$new" ] || { echo "left: $new" && return 1; }
}
succeeds() { answers /api/comedor.php '"success":true'; }
is_php() { answers /api/comedor.php 'OLD PHP SCRIPT'; }

# A folder with what a reader downloads, for this machine.
downloads=/tmp/downloads
# download FILE...
download() {
    mkdir -p $downloads
    rm -f $downloads/*
    cp "$@" $downloads/
    (cd $downloads && sha256sum -- * > SHA256SUMS)
}
# run and again, in that folder.
with_downloads() {
    as=(env --chdir=$downloads)
    "$@"
    as=()
}
settings() {
    inline 'sudo install -D -m 644 /usr/share/doc/comedor/examples/comedor.conf.example /etc/comedor/comedor.conf'
}
# By CGI in Apache.
enable() {
    install_package
    settings
    run 'By hand.1'
    succeeds
}
disable() {
    inline 'sudo a2disconf --purge comedor && sudo systemctl restart apache2'
    is_php
}
# As the first request does, after `systemctl enable`.
use_fastcgi() { systemctl enable --now comedor.socket && systemctl start comedor.service; }

day=/DATA/service/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
save() {
    curl -s -m 60 -b "PHPSESSID=$id" 'http://localhost/api/comedor.php?action=save_menu&aulario=aula1' \
        -d '{"date":"2026-11-20","menu_type":"basal","plates":{"primero":{"name":"Lentejas"}}}'
    grep Lentejas $day
}
back_up() {
    enable
    save
    run 'Back up.1'
    [ "$(stat -c %a /var/backups/comedor-*.tar.gz)" = 600 ]
}

application /var/www/html service /DATA/service www-data
everything > /tmp/before
systemctl start apache2
log_in ''
is_php

case $HEADING in
'1. Install')
    download "$PACKAGE"
    with_downloads run '1. Install.1'
    [ "$(systemctl is-enabled comedor.socket)" = disabled ]
    is_php
    ;;
'2. Set up')
    install_package
    run_and_agree '2. Set up.1'
    succeeds
    ;;
'3. Try')
    enable
    run '3. Try.1' | tee /tmp/tried
    grep '400' /tmp/tried && grep 'Not logged in: the request has no valid session.' /tmp/tried
    ;;
Check)
    enable
    run 'Check.1'
    run 'Check.2' <<< "$id"
    ;;
Settings)
    application /var/www/html/aulas aulas /DATA/aulas www-data
    for folder in /etc/php/*/apache2/conf.d; do echo 'date.timezone = Europe/Madrid' > "$folder/99-zone.ini"; done
    install_package
    settings
    mv '/tmp/blocks/Settings.1' /etc/comedor/comedor.conf
    sed -i 's#\B/api/comedor#/aulas/api/comedor#g' /etc/apache2/conf-available/comedor.conf
    run 'Check.1'
    run 'By hand.1'
    log_in /aulas
    answers /aulas/api/comedor.php '"success":true'
    is_php
    # A second application, with settings of its own.
    cat > /etc/apache2/conf-enabled/second.conf << 'CONF'
<Location "/api/comedor.php">
    ScriptAlias "/usr/lib/cgi-bin/comedor"
    SetEnv COMEDOR_SERVICE service
</Location>
CONF
    systemctl restart apache2
    log_in ''
    succeeds
    ;;
Upgrade)
    download "$PACKAGE"
    with_downloads run '1. Install.1'
    settings
    dpkg-deb -R "$PACKAGE" /tmp/next
    for file in comedor/comedor.conf apache2/conf-available/comedor.conf; do echo '# mine' >> /etc/$file; done
    echo '# new' >> /tmp/next/etc/apache2/conf-available/comedor.conf
    sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
    dpkg-deb --root-owner-group -b /tmp/next /tmp > /dev/null
    download /tmp/comedor_*.deb
    use_fastcgi
    echo | with_downloads again '1. Install.1' > /tmp/question 2>&1
    running=$(readlink "/proc/$(systemctl show --value --property=MainPID comedor.service)/exe")
    [[ $running == */usr/lib/cgi-bin/comedor ]] || { echo "$running" && exit 1; }
    grep -F 'What would you like to do about it ?' /tmp/question
    grep '# mine' /etc/comedor/comedor.conf /etc/apache2/conf-available/comedor.conf
    ;;
'Back up') back_up ;;
Restore)
    back_up
    [ -e /var/backups/comedor-2026-11-22.tar.gz ] || mv /var/backups/comedor-*.tar.gz /var/backups/comedor-2026-11-22.tar.gz
    for block in 'Restore.1' 'Restore.2'; do
        echo '{' > $day
        run "$block"
        grep Lentejas $day
        [ "$(stat -c %U $day "$(dirname $day)/../../../.comedor.lock" | uniq)" = www-data ]
    done
    ;;
Undo)
    install_package
    run_and_agree '2. Set up.1'
    succeeds
    save
    run 'Undo.1'
    is_php
    use_fastcgi
    run 'Undo.2' <<< y
    [ "$(systemctl is-active comedor.socket comedor.service | sort -u)" = inactive ]
    find /DATA/service -name .comedor.lock | grep lock
    run 'Undo.3'
    nothing_remains
    ;;
'By hand')
    enable
    # PHP-FPM that takes the path first.
    fpm=php$(basename /etc/php/*)-fpm site=/etc/apache2/sites-available/000-default.conf
    systemctl start "$fpm"
    a2enmod -q proxy_fcgi
    match="ProxyPassMatch \"^/(.*[.]php)\$\" \"unix:/run/php/$fpm.sock|fcgi://localhost/var/www/html\""
    sed -i "s#^</VirtualHost>#$match\n&#" $site
    systemctl restart apache2
    is_php
    inline 'grep -R ProxyPassMatch /etc/apache2/sites-enabled/ /etc/apache2/conf-enabled/' | grep fcgi://
    exception=$(sed -n 's/^#ProxyPass /ProxyPass /p' /etc/apache2/conf-available/comedor.conf)
    sed -i "s#^ProxyPassMatch#$exception\n&#" $site
    systemctl restart apache2
    succeeds
    process() { systemctl show -P MainPID "$fpm"; }
    before=$(process)
    inline "sudo systemctl restart 'php*-fpm.service'"
    [[ $before != 0 && $(process) != "$before" ]]
    disable
    ;;
'By hand: lighttpd')
    install_package
    settings
    systemctl stop apache2
    for file in lighttpd lighttpd-fastcgi; do
        copy $file.conf /etc/lighttpd/conf-available/90-comedor.conf
        inline 'sudo lighty-enable-mod comedor'
        inline 'sudo lighttpd -tt -f /etc/lighttpd/lighttpd.conf && sudo systemctl restart lighttpd'
        succeeds
        inline 'sudo lighty-disable-mod comedor && sudo systemctl restart lighttpd'
    done
    ;;
'By hand: nginx')
    install_package
    settings
    systemctl stop apache2
    copy nginx.conf /etc/nginx/snippets/comedor.conf
    copy nginx-upstream.conf /etc/nginx/conf.d/comedor.conf
    systemctl start nginx
    sed -i 's#^\tserver_name _;#&\n\tinclude snippets/comedor.conf;#' /etc/nginx/sites-available/default
    inline 'sudo systemctl enable --now comedor.socket'
    inline 'sudo nginx -t && sudo systemctl reload nginx'
    succeeds
    inline 'sudo systemctl disable --now comedor.socket comedor.service'
    systemctl stop nginx
    copy nginx-fcgiwrap.conf /etc/nginx/snippets/comedor.conf
    systemctl start nginx fcgiwrap.socket
    inline 'sudo nginx -t && sudo systemctl reload nginx'
    succeeds
    ;;
'By hand: Caddy')
    install_package
    settings
    systemctl stop apache2
    systemctl start caddy
    copy Caddyfile /etc/caddy/comedor.caddyfile
    printf ':80 {\n\timport comedor.caddyfile\n}\n' > /etc/caddy/Caddyfile
    inline 'sudo usermod -aG www-data caddy'
    inline 'sudo systemctl enable --now comedor.socket'
    inline 'sudo caddy validate --config /etc/caddy/Caddyfile && sudo systemctl restart caddy'
    succeeds
    sed -i '/import comedor.caddyfile/d' /etc/caddy/Caddyfile
    rm /etc/caddy/comedor.caddyfile
    inline 'sudo systemctl restart caddy && sudo systemctl disable --now comedor.socket comedor.service'
    inline 'sudo gpasswd -d caddy www-data'
    ;;
'Without the package')
    archive=comedor-0-$(uname -m)-linux
    git -c safe.directory="$PWD" archive --prefix="$archive/" HEAD | tar -x -C /tmp
    dpkg-deb --fsys-tarfile "$PACKAGE" | tar -xO ./usr/lib/cgi-bin/comedor > "/tmp/$archive/comedor"
    chmod 755 "/tmp/$archive/comedor"
    cp cgi-bin/{install,uninstall} "/tmp/$archive/"
    tar -C /tmp -czf "/tmp/$archive.tar.gz" "$archive"
    download "/tmp/$archive.tar.gz"
    with_downloads run 'Without the package.1'
    run 'Without the package.2'
    run 'By hand.1'
    succeeds
    disable
    examples=/usr/local/share/doc/comedor/examples
    enable_fastcgi
    # Requests that arrive during the restart wait in the socket, and none is lost.
    touch /tmp/restarting
    while [ -e /tmp/restarting ]; do gives /api/comedor.php '"success":true'; done &
    run 'Without the package.3'
    again 'Without the package.3'
    again 'Without the package.3'
    rm /tmp/restarting
    wait $!
    disable_fastcgi
    with_downloads run 'Without the package.4'
    find /DATA -name .comedor.lock -delete
    nothing_remains
    ;;
'The socket')
    install_package
    settings
    enable_fastcgi
    # As `systemctl edit` does.
    mkdir -p /etc/systemd/system/comedor.service.d /srv/school /srv/sessions
    mv '/tmp/blocks/The socket.1' /etc/systemd/system/comedor.service.d/override.conf
    systemctl daemon-reload
    inline 'sudo systemctl restart comedor.socket comedor.service'
    succeeds
    systemctl show --property=ReadWritePaths comedor.service | grep -F '/srv/school /srv/sessions'
    inline 'sudo systemctl revert comedor.socket comedor.service'
    disable_fastcgi
    is_php
    ;;
'Start here')
    enable
    run 'Start here.1'
    inline 'sudo tail /var/log/apache2/error.log'
    use_fastcgi
    inline 'sudo journalctl -u comedor' | grep -F 'Started comedor.service'
    ;;
'500 with an HTML page')
    install_package
    run '500 with an HTML page.1'
    ;;
'Permission denied')
    sed -i 's#PATH#/DATA/service/Centros#' '/tmp/blocks/Permission denied.1'
    run 'Permission denied.1'
    ;;
'Wrong owner, group or mode')
    # As after a copy by root.
    chown -R root: /DATA/service/Centros/colegio
    run 'Wrong owner, group or mode.1'
    [ -z "$(find /DATA/service ! -user www-data)" ]
    ;;
'Leftover temporary files')
    # As after a killed process.
    enable
    save
    sudo -u www-data touch -d '1 hour ago' "${day%/*}/._datos.json.tmp"
    run 'Leftover temporary files.1'
    [ -z "$(find /DATA/service -name '*.tmp')" ]
    ;;
*) echo "unknown heading $HEADING" && exit 1 ;;
esac

! compgen -G "/tmp/blocks/$HEADING.*" || { echo 'not run' && exit 1; }
