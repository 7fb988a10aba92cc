# An upgrade from a server that version 0.3.0 has set up, with settings that an administrator has changed: nothing is
# asked, settings and answers stay, and set-up and undo remove what that version wrote.
. tests/machines/server.sh

conf=/etc/comedor/comedor.conf
# version_0_3_0: the package with that version, its settings file and what its set-up by FastCGI wrote.
version_0_3_0() {
    rm -rf /tmp/old
    dpkg-deb -R "$PACKAGE" /tmp/old
    sed -i 's/^Version: .*/Version: 0.3.0/' /tmp/old/DEBIAN/control
    install -D -m 644 examples/comedor.conf.example /tmp/old$conf
    echo $conf >> /tmp/old/DEBIAN/conffiles
    dpkg-deb --root-owner-group -b /tmp/old /tmp/old.deb > /dev/null
    dpkg --purge comedor > /dev/null
    dpkg -i /tmp/old.deb > /dev/null
    cp -p $conf $conf.before-setup
    printf '%s\n' '# Written by `comedor setup`' COMEDOR_SERVICE=entreaulas >> $conf
    sed 's#/api/comedor.php#/entreaulas&#' examples/apache-fastcgi.conf.example > /etc/apache2/conf-available/comedor-setup.conf
    a2enmod -q proxy_fcgi
    a2enconf -q comedor-setup
    for drop_in in service/Service/User socket/Socket/SocketUser; do
        IFS=/ read -r kind section name <<< $drop_in
        mkdir -p /etc/systemd/system/comedor.$kind.d
        printf '%s\n' "[$section]" $name=www-data > /etc/systemd/system/comedor.$kind.d/comedor-setup.conf
    done
    systemctl daemon-reload
    systemctl enable -q --now comedor.socket
    restart
}
upgraded() {
    lay_out
    version_0_3_0
    sed -i 's/^COMEDOR_SERVICE=.*/&\nCOMEDOR_SESSION_LIFETIME=900/' $conf
    cp $conf /tmp/settings
    comedor_answers
    DEBIAN_FRONTEND=teletype apt-get install -y "$PACKAGE" < /dev/null > /tmp/output 2>&1 || { cat /tmp/output && return 1; }
    diff /tmp/settings $conf
    comedor_answers
}
undone() {
    comedor setup --undo
    script_reads_the_menu
    left=$(find /etc /var/lib/apache2 -name '*comedor*setup*')
    [ -z "$left" ] || { echo "left: $left" && return 1; }
    grep COMEDOR_SESSION_LIFETIME=900 $conf
}

upgraded
undone
upgraded
set_up 0
comedor_answers
check_is_clean
[ ! -e $conf.before-setup ]
undone
dpkg --purge comedor
[ ! -e /etc/comedor ]
