# An upgrade from a server that the set-up of version 0.4.0 has set up, with settings that an administrator has added.
# Nothing is asked, settings and answers stay, the new program and unit run, the changelog's commands remove what set-up
# wrote, and the guide leads on from there, under the heading in $HEADINGS.
. lab/machines/server.sh

conf=/etc/comedor/comedor.conf
# version_0_4_0 WAY: the package with that version, its prerm and older files, and what its set-up wrote.
version_0_4_0() {
    local part
    rm -rf /tmp/old
    dpkg-deb -R "$PACKAGE" /tmp/old
    sed -i 's/^Version: .*/Version: 0.4.0/' /tmp/old/DEBIAN/control
    sed -i '2i [ "$1" != remove ] || /usr/lib/cgi-bin/comedor setup --undo || true' /tmp/old/DEBIAN/prerm
    echo '# 0.4.0' >> /tmp/old/etc/apache2/conf-available/comedor.conf
    sed -i '/^ExecStartPre/d; s/^TasksMax=.*/TasksMax=352/' /tmp/old/usr/lib/systemd/system/comedor.service
    dpkg-deb --root-owner-group -b /tmp/old /tmp/old.deb > /dev/null
    dpkg -i /tmp/old.deb > /dev/null
    for part in all $(is_fastcgi && echo service) "$1"; do cp -r "tests/fixtures/version-0.4.0/$part/." /; done
    case $1 in
    cgi | fastcgi) a2enconf -q zz-comedor-setup ;;
    nginx) sed -i '/server_name/a include /etc/nginx/snippets/comedor-setup.conf;' /etc/nginx/sites-available/default ;;
    caddy) sed -i '/example {/r /tmp/lines' /etc/caddy/Caddyfile ;;
    esac
    systemctl daemon-reload
    ! is_fastcgi || systemctl enable -q --now comedor.socket
    restart
}
is_fastcgi() { [ $way != cgi ]; }

# At a terminal where nobody types: a question would end it.
upgrade() { script --quiet --return --command "apt-get install $PACKAGE" /dev/null < /dev/null > /tmp/output 2>&1; }
# Before anything is changed, it refuses settings that no longer exist.
is_refused() {
    cp $conf /tmp/settings
    printf '%s\n' COMEDOR_SESSION_MAX_AGE=900 ' COMEDOR_LEAVE_EARLY = off' >> $conf
    upgrade && cat /tmp/output && return 1
    grep -F "of $conf no longer exist" /tmp/output
    grep -F '7:COMEDOR_SESSION_MAX_AGE=900' /tmp/output
    grep -F '8: COMEDOR_LEAVE_EARLY = off' /tmp/output
    [ "$(dpkg-query -W -f '${Status} ${Version}' comedor)" = 'install ok installed 0.4.0' ]
    cat /tmp/settings > $conf
}
new_version_runs() {
    local running
    [ "$(systemctl show -P TasksMax comedor.service)" = "$(sed -n 's/^TasksMax=//p' packaging/systemd/comedor.service)" ]
    [ "$(systemctl show -P NeedDaemonReload comedor.service)" = no ]
    running=$(readlink "/proc/$(systemctl show -P MainPID comedor.service)/exe")
    [[ $running == */usr/lib/cgi-bin/comedor ]] || { echo "$running" && return 1; }
}
# The commands of the changelog.
remove_setup() {
    case $way in
    cgi | fastcgi)
        inline 'sudo a2disconf zz-comedor-setup && sudo rm /etc/apache2/conf-available/zz-comedor-setup.conf'
        inline 'sudo systemctl restart apache2'
        ;;
    nginx)
        sed -i '/comedor-setup/d' /etc/nginx/sites-available/default
        inline 'sudo nginx -t && sudo systemctl reload nginx'
        inline 'sudo rm /etc/nginx/snippets/comedor-setup.conf /etc/nginx/conf.d/comedor-setup.conf'
        ;;
    caddy)
        sed -i '/^@comedor/,/^}/d' /etc/caddy/Caddyfile
        inline 'sudo systemctl restart caddy'
        ;;
    lighttpd) inline 'sudo rm /etc/lighttpd/conf-enabled/90-comedor.conf && sudo systemctl restart lighttpd' ;;
    esac
    soon is_ready
    script_reads_the_menu
    if is_fastcgi; then
        inline 'sudo systemctl disable --now comedor.socket comedor.service'
        inline 'sudo rm /etc/systemd/system/comedor.s*.d/comedor-setup.conf && sudo systemctl daemon-reload'
    fi
    inline 'sudo rm /etc/comedor/site'
}

# upgraded WAY [NAME=VALUE]...: such a server, upgraded, and then enabled under $heading of the guide.
upgraded() {
    local left
    way=$1
    lay_out "${@:2}"
    version_0_4_0 "$way"
    comedor_answers
    is_refused
    upgrade || { cat /tmp/output && return 1; }
    diff /tmp/settings $conf
    cmp apache.conf.example /etc/apache2/conf-available/comedor.conf
    comedor_answers
    ! is_fastcgi || new_version_runs
    inline 'sudo -u www-data comedor check' | expect 'no problems found'

    # The command in the first lines of these files says where its successors are.
    { comedor setup --undo 2>&1 || true; } | expect '"When you upgrade" in /usr/share/doc/comedor/CHANGELOG.md'
    grep -F 'When you upgrade' CHANGELOG.md
    remove_setup
    left=$(find /etc -name '*comedor-setup*')
    [ -z "$left" ] || { echo "left: $left" && return 1; }
    # The settings serve the way of this version.
    blocks docs/install.md
    run '2. Open the set-up page.1'
    enable "$heading"
    comedor_answers
    disable "$heading"
    dpkg --purge comedor
    [ ! -e /etc/comedor ]
}
heading=${HEADINGS%$'\n'}
case $heading in
Apache) upgraded cgi ;;
'Apache with FastCGI') upgraded fastcgi ;;
nginx) upgraded nginx web=nginx php=fpm ;;
Caddy) upgraded caddy web=caddy php=fpm ;;
lighttpd) upgraded lighttpd web=lighttpd ;;
*) echo "unknown heading $heading" && exit 1 ;;
esac
