# What `comedor check` finds on servers of several kinds, with comedor enabled as the guides say.
. tests/deploy/server.sh

# enabled cgi|fastcgi [SETTING]...: comedor answers, and the check finds no problem.
enabled() {
    log_in
    script_answers
    enable_by_hand "$@"
    comedor_answers
    check_is_clean
}

lay_out
install_package
enabled cgi

lay_out php=fpm data=/srv/disk/entreaulas
install_package
enabled cgi COMEDOR_DATA_DIR=/srv/disk/entreaulas

lay_out php=pool user=maestra data_at=/home/maestra/school
install_package
drop_in User=maestra Group=maestra ReadWritePaths=/home/maestra/school ProtectHome=no
enabled fastcgi

lay_out web=nginx php=fpm
install_package
enabled fastcgi
