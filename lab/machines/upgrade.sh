# An upgrade from a server that the set-up of version 0.4.0 has set up, by CGI and by FastCGI, with settings that an
# administrator has added: nothing is asked, settings and answers stay, and the changelog's commands remove it.
. lab/machines/server.sh

conf=/etc/comedor/comedor.conf
apache=/etc/apache2/conf-available/zz-comedor-setup.conf
# version_0_4_0 cgi|fastcgi: the package with that version and its prerm, and what its set-up wrote.
version_0_4_0() {
    rm -rf /tmp/old
    dpkg-deb -R "$PACKAGE" /tmp/old
    sed -i 's/^Version: .*/Version: 0.4.0/' /tmp/old/DEBIAN/control
    sed -i '2i [ "$1" != remove ] || /usr/lib/cgi-bin/comedor setup --undo || true' /tmp/old/DEBIAN/prerm
    dpkg-deb --root-owner-group -b /tmp/old /tmp/old.deb > /dev/null
    dpkg -i /tmp/old.deb > /dev/null
    mkdir -p /etc/comedor
    printf '%s\n' '# Our school' COMEDOR_TRUSTED_ORIGINS=https://menus.example \
        '# Written by `comedor setup`, which replaces these lines; to remove them: sudo comedor setup --undo' \
        COMEDOR_SERVICE=entreaulas COMEDOR_ACCESS=listed TZ=Europe/Madrid '# End of the lines of `comedor setup`' > $conf
    printf '%s\n' http://school.example/entreaulas/ $application/api/comedor.php > /etc/comedor/site
    "set_up_by_$1"
    a2enconf -q zz-comedor-setup
    restart
}
mark='# Written by `comedor setup`; to undo it: sudo comedor setup --undo'
set_up_by_cgi() {
    cat > $apache << CONF
$mark
Include mods-available/cgi.load
IncludeOptional mods-available/cgi.conf
<Location "/entreaulas/api/comedor.php">
    ScriptAlias "/usr/lib/cgi-bin/comedor"
</Location>
<Directory "/usr/lib/cgi-bin">
    <Files "comedor">
        Require all granted
    </Files>
</Directory>
<IfModule proxy_module>
    ProxyPass "/entreaulas/api/comedor.php" "!"
</IfModule>
CONF
}
set_up_by_fastcgi() {
    cat > $apache << CONF
$mark
Include mods-available/proxy.load
IncludeOptional mods-available/proxy.conf
Include mods-available/proxy_fcgi.load
IncludeOptional mods-available/proxy_fcgi.conf
<Location "/entreaulas/api/comedor.php">
    SetHandler "proxy:unix:/run/comedor/comedor.sock|fcgi://comedor"
</Location>
<Proxy "fcgi://comedor" enablereuse=on ttl=60 retry=0>
</Proxy>
<IfModule proxy_module>
    ProxyPass "/entreaulas/api/comedor.php" "!"
</IfModule>
CONF
    mkdir -p /etc/systemd/system/comedor.{service,socket}.d
    printf '%s\n' "$mark" '[Service]' User=www-data Group=www-data ReadWritePaths=-/DATA/entreaulas/Centros \
        ReadWritePaths=-/var/lib/php/sessions > /etc/systemd/system/comedor.service.d/comedor-setup.conf
    printf '%s\n' "$mark" '[Socket]' SocketUser=www-data SocketGroup=www-data \
        > /etc/systemd/system/comedor.socket.d/comedor-setup.conf
    systemctl daemon-reload
    systemctl enable -q --now comedor.socket
}

for way in cgi fastcgi; do
    lay_out
    version_0_4_0 $way
    comedor_answers
    cp $conf /tmp/settings
    DEBIAN_FRONTEND=teletype apt-get install -y "$PACKAGE" < /dev/null > /tmp/output 2>&1 || { cat /tmp/output && exit 1; }
    diff /tmp/settings $conf
    comedor_answers

    inline 'sudo a2disconf zz-comedor-setup && sudo rm /etc/apache2/conf-available/zz-comedor-setup.conf'
    inline 'sudo systemctl restart apache2'
    script_reads_the_menu
    if [ $way = fastcgi ]; then
        inline 'sudo systemctl disable --now comedor.socket comedor.service'
        inline 'sudo rm /etc/systemd/system/comedor.s*.d/comedor-setup.conf && sudo systemctl daemon-reload'
    fi
    inline 'sudo rm /etc/comedor/site'
    left=$(find /etc -name '*comedor-setup*')
    [ -z "$left" ] || { echo "left: $left" && exit 1; }
    # The settings serve the way of this version.
    blocks docs/install.md
    run 'Apache.1'
    comedor_answers
done
dpkg --purge comedor
[ ! -e /etc/comedor ]
