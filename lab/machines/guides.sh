# Every command below the first heading of $HEADINGS, and of the others, in docs/install.md or docs/troubleshooting.md.
. lab/machines/server.sh
blocks docs/install.md docs/troubleshooting.md
# packaging/release/tests/image
rm /tmp/blocks/Containers.*
for block in /tmp/blocks/*; do
    heading=$(basename "${block%.*}")
    grep -qF "\"$heading\"" lab/machines/deploy.rs || { echo "no test of this heading: $heading" && exit 1; }
done

# Everything of comedor on this machine, but for the repository, the PHP script, and the note of a2disconf.
everything() {
    find /DATA/ /etc /opt /usr /var -xdev -name '*comedor*' ! -path '/var/www/*/comedor.php' \
        ! -path '/var/lib/apache2/conf/disabled_by_admin/*' | sort
}
nothing_remains() {
    local new
    new=$(comm -13 /tmp/before <(everything))
    [ -z "$new" ] || { echo "left: $new" && return 1; }
}

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
configured() {
    mkdir -p /etc/comedor
    echo COMEDOR_SERVICE=entreaulas > /etc/comedor/comedor.conf
}
# By CGI in Apache.
enabled() {
    install_package
    configured
    run 'Apache.1'
    comedor_answers
}
# As the first request does, after `systemctl enable`.
use_fastcgi() { systemctl enable --now comedor.socket && systemctl start comedor.service; }

day=/DATA/entreaulas/Centros/colegio/Aularios/aula1/Comedor/2026-11/20/_datos.json
back_up() {
    enabled
    save Lentejas
    setfacl -m u:nobody:r $day
    # A centre on another disk
    centre=${day%/Aularios/*}
    cp -a "$centre" /srv/disk/colegio
    rm -r "$centre"
    ln -s /srv/disk/colegio "$centre"
    chown -h www-data: "$centre"
    run 'Back up.1'
    copies 1
    [ "$(stat -c %a "$backups" "$backups"/*/*.tar.gz | xargs)" = '700 600 600' ]
}
backups=/var/backups/comedor job=/etc/cron.daily/comedor-backup note=/etc/motd.d/comedor-backup
# copies COUNT: so many complete copies exist.
copies() { [ "$(find $backups -mindepth 2 -name settings.tar.gz ! -path '*-incomplete*' | wc -l)" = "$1" ]; }
# fails TEXT: the daily copy says why, at each login too, and no copy is lost.
fails() {
    ! run-parts --regex '^comedor-backup$' /etc/cron.daily 2> /tmp/failed || exit 1
    expect "$1" < /tmp/failed
    sudo -u maestra grep -F 'has failed' $note
    copies 1
}

# whole_way [NAME=VALUE]...: on this server, the commands of the guide from step 2 to an upgrade, and to its end.
whole_way() {
    lay_out "$@"
    everything > /tmp/before
    follow_the_guide "$heading"
    next_version
    dpkg -i /tmp/next.deb > /dev/null
    comedor_answers
    disable "$heading"
    script_reads_the_menu
    run 'Undo.1' <<< y
    # As after `systemctl edit comedor.socket`
    mkdir -p /etc/systemd/system/comedor.socket.d
    run 'Undo.2'
    find /DATA/ /srv/disk -name .comedor.lock | grep lock
    run 'Undo.3' "s/www-data/$user/"
    [ -z "$(find /DATA/ /srv/disk -name .comedor.lock)" ]
    nothing_remains
}

mapfile -t headings <<< "${HEADINGS%$'\n'}"
heading=${headings[0]}
case $heading in
'1. Install')
    lay_out
    download "$PACKAGE"
    with_downloads run '1. Install.1'
    [ "$(systemctl is-enabled comedor.socket)" = disabled ]
    script_answers
    ;;
Apache)
    whole_way
    ;;
'Apache with FastCGI')
    whole_way php=pool user=maestra tls=yes data_at=/srv/disk/school sessions=/srv/sessions \
        pool='php_admin_value[session.save_path] = /srv/sessions'
    ;;
nginx)
    whole_way web=nginx php=pool user=maestra pool='
        prefix = /run/php
        listen = school.sock
        php_admin_value[open_basedir] = /var/www/html/entreaulas:/DATA:/var/lib/php/sessions
        php_admin_value[disable_functions] = fsockopen,exec,passthru,popen,proc_open,shell_exec,system'
    ;;
Caddy)
    whole_way web=caddy php=fpm
    inline 'sudo gpasswd -d caddy www-data'
    ;;
lighttpd)
    whole_way web=lighttpd
    # The other example, at the same place.
    install_package
    configured
    again 'lighttpd.1' 's/lighttpd.conf.example/lighttpd-fastcgi.conf.example/'
    soon comedor_answers
    ;;
'5. Try')
    lay_out
    enabled
    install -m 644 /usr/share/comedor/comedor-setup.php $application/api/
    run '5. Try.1'
    [ ! -e $application/api/comedor-setup.php ]
    run '5. Try.2' 's#https://school.example#http://localhost#' | tee /tmp/tried
    grep '400' /tmp/tried && grep 'Not logged in: the request has no valid session.' /tmp/tried
    ;;
Check)
    lay_out
    enabled
    awk '/PHPSESSID/ { print $7 }' /tmp/cookies > /tmp/cookie
    run 'Check.1' < /tmp/cookie
    ;;
Settings)
    lay_out
    install_package
    mkdir -p /etc/comedor
    mv '/tmp/blocks/Settings.1' /etc/comedor/comedor.conf
    for folder in /etc/php/*/apache2/conf.d; do echo 'date.timezone = Europe/Madrid' > "$folder/99-zone.ini"; done
    run 'Apache.1'
    comedor_answers
    inline 'sudo -u www-data comedor check'
    ;;
Upgrade)
    lay_out
    download "$PACKAGE"
    with_downloads run '1. Install.1'
    configured
    next_version
    for file in comedor/comedor.conf apache2/conf-available/comedor.conf; do echo '# mine' >> /etc/$file; done
    # Downloads a version whose file for Apache is another one.
    download_next() {
        sed -i 's/^Version: .*/&.1/' /tmp/next/DEBIAN/control
        echo '# new' >> /tmp/next/etc/apache2/conf-available/comedor.conf
        rm -f /tmp/comedor_*.deb
        dpkg-deb --root-owner-group -b /tmp/next /tmp > /dev/null
        download /tmp/comedor_*.deb
    }
    download_next
    use_fastcgi
    echo | with_downloads again '1. Install.1' > /tmp/question 2>&1
    running=$(readlink "/proc/$(systemctl show --value --property=MainPID comedor.service)/exe")
    [[ $running == */usr/lib/cgi-bin/comedor ]] || { echo "$running" && exit 1; }
    grep -F 'What would you like to do about it ?' /tmp/question
    download_next
    with_downloads inline 'sudo apt-get install -y -o Dpkg::Options::=--force-confold ./comedor_*_amd64.deb' < /dev/null > /tmp/none
    grep -F 'Using current old file as you requested' /tmp/none
    grep '# mine' /etc/comedor/comedor.conf /etc/apache2/conf-available/comedor.conf
    ;;
'Back up')
    lay_out
    back_up
    backup=$(echo $backups/*)
    USER=root run 'Back up.2' "s#=/var/backups/.*#=$backup#"
    cmp $backups/*/data.tar.gz ~/data.tar.gz
    sleep 1
    traced="strace -fqq -o /tmp/calls -e trace=fsync,rename,renameat,renameat2 $job"
    script --quiet --return --command "$traced" /dev/null | expect 'has 1 saved days'
    # A power cut finds a copy complete as soon as it has its name.
    [ "$(grep -oE 'fsync|rename' /tmp/calls | tr '\n' ' ')" = 'fsync fsync fsync rename fsync ' ]
    rm -r "$backup"
    # A disk that is missing, a link to a folder above, a file that PHP's user cannot read
    mv /srv/disk/colegio /srv/disk/gone
    fails 'colegio: Cannot stat'
    mv /srv/disk/gone /srv/disk/colegio
    sudo -u www-data ln -s .. /DATA/entreaulas/link
    fails 'File system loop detected'
    sudo -u www-data ln -sfT /etc/shadow /DATA/entreaulas/link
    fails 'link: Cannot open: Permission denied'
    # A link to files without end
    sed -i 's/timeout 2h/timeout 5/' $job
    sudo -u www-data ln -sfT /proc /DATA/entreaulas/link
    fails 'has failed'
    rm /DATA/entreaulas/link
    sed -i 's/timeout 5/timeout 2h/' $job
    # A copy that is too large
    head -c 100000 /dev/urandom > /DATA/entreaulas/large
    sed -i 's/2097152/18/' $job
    fails 'has failed'
    # A disk that a copy fills
    mount -t tmpfs -o size=64k none $backups
    ! $job 2> /tmp/failed || exit 1
    expect 'No space left on device' < /tmp/failed
    [ -z "$(ls $backups)" ]
    umount $backups
    rm /DATA/entreaulas/large
    sed -i 's/^copies=14/copies=2/' $job
    # Before comedor is set up
    rm -r /etc/comedor
    for _ in 1 2 3; do
        sleep 1
        run-parts --regex '^comedor-backup$' /etc/cron.daily
        [ ! -e $note ]
    done
    copies 2
    # tar reads what is in a file, not the zeros up to its size.
    truncate -s 100G /DATA/entreaulas/sparse
    sleep 1
    $job
    ;;
Restore)
    lay_out
    back_up
    mv $backups/* $backups/2026-11-22-062500
    run 'Restore.1' | expect Lentejas
    for block in 'Restore.2' 'Restore.4'; do
        echo '{' > $day
        [ $block = Restore.2 ] || ! run 'Restore.3' > /tmp/changed || exit 1
        echo COMEDOR_SERVICE=other > /etc/comedor/comedor.conf
        run "$block"
        grep Lentejas $day
        getfacl -cp $day | grep user:nobody:r--
        [ -L "$centre" ]
        [ "$(stat -c %U $day "$(dirname $day)/../../../.comedor.lock" | uniq)" = www-data ]
    done
    # What was there before the restore of one file
    mv ~/before-*.json ~/before-093000.json
    echo '{' > $day
    aulario=${day%/Comedor/*}
    # shellcheck disable=SC2016  # as the document has it
    aulario=${aulario#/} inline 'sudo -u www-data flock "/$aulario/.comedor.lock" tee "/$aulario/Comedor/2026-11/20/_datos.json" < ~/before-093000.json'
    grep Lentejas $day
    grep -F "${day#/}" /tmp/changed
    ! grep 'File type differs' /tmp/changed || exit 1
    grep COMEDOR_SERVICE=entreaulas /etc/comedor/comedor.conf
    # On a new machine
    rm -r /DATA/entreaulas /srv/disk/colegio /etc/comedor
    inline 'sudo mkdir -p /DATA && sudo mkdir /DATA/entreaulas && sudo chown -h www-data: /DATA/entreaulas'
    again 'Restore.4'
    comedor_answers
    ;;
'Without the package')
    lay_out
    everything > /tmp/before
    archive=comedor-0-$(uname -m)-linux
    git -c safe.directory="$PWD" archive --prefix="$archive/" HEAD | tar -x -C /tmp
    dpkg-deb --fsys-tarfile "$PACKAGE" | tar -xO ./usr/lib/cgi-bin/comedor > "/tmp/$archive/comedor"
    chmod 755 "/tmp/$archive/comedor"
    cp cgi-bin/{install,uninstall} "/tmp/$archive/"
    tar -C /tmp -czf "/tmp/$archive.tar.gz" "$archive"
    download "/tmp/$archive.tar.gz"
    with_downloads run 'Without the package.1'
    configured
    run 'Without the package.2'
    run 'Apache.1'
    comedor_answers
    disable Apache
    run 'Apache with FastCGI.1' 's#/usr/share#/usr/local/share#'
    # Requests that arrive during the restart wait in the socket, and none is lost.
    log_in
    touch /tmp/restarting
    while [ -e /tmp/restarting ]; do api get_menu_types | expect '{"success":true'; done &
    run 'Without the package.3'
    again 'Without the package.3'
    again 'Without the package.3'
    rm /tmp/restarting
    wait $!
    disable 'Apache with FastCGI'
    with_downloads run 'Without the package.4'
    find /DATA/ -name .comedor.lock -delete
    nothing_remains
    ;;
'Start here')
    lay_out
    enabled
    run 'Start here.1'
    chmod 0 "$(dirname $day)"
    api get_menu | expect INTERNAL_ERROR
    inline 'sudo grep comedor: /var/log/apache2/error.log | tail' | grep -F "$(dirname $day)"
    use_fastcgi
    inline 'sudo journalctl -u comedor' | grep -F 'Started comedor.service'
    inline 'sudo systemctl status --lines=100 --no-pager comedor.service'
    ;;
'500 with an HTML page')
    lay_out
    install_package
    run '500 with an HTML page.1'
    ;;
'Permission denied')
    lay_out
    run 'Permission denied.1' 's#PATH#/DATA/entreaulas/Centros#'
    ;;
'Wrong owner, group or mode')
    lay_out
    # As after a copy by root.
    chown -R root: /DATA/entreaulas/Centros/colegio
    run 'Wrong owner, group or mode.1'
    [ -z "$(find /DATA/entreaulas ! -user www-data)" ]
    ;;
'Leftover temporary files')
    lay_out
    # As after a killed process.
    enabled
    sudo -u www-data touch -d '1 hour ago' "${day%/*}/._datos.json.tmp"
    run 'Leftover temporary files.1'
    [ -z "$(find /DATA/entreaulas -name '*.tmp')" ]
    ;;
'Session folder')
    lay_out
    run 'Session folder.1'
    [ "$(stat -c %U:%G:%a /srv/sessions)" = www-data:www-data:700 ]
    ;;
'A user still has what was taken away')
    lay_out
    enabled
    run 'A user still has what was taken away.1'
    api get_menu | expect '"code":"INVALID_SESSION","reason":"session"'
    ;;
BUSY)
    lay_out php=fpm
    process() { systemctl show -P MainPID "$fpm"; }
    before=$(process)
    inline "sudo systemctl restart 'php*-fpm.service'"
    [[ $before != 0 && $(process) != "$before" ]]
    ;;
*) echo "unknown heading $heading" && exit 1 ;;
esac

for heading in "${headings[@]}"; do
    ! compgen -G "/tmp/blocks/$heading.*" || { echo 'not run' && exit 1; }
done
