# `comedor setup` is killed at each of its steps: no page and no session remains, and after `--undo` the
# server is as it was.
. tests/machines/server.sh

# Set-up's pages, and its sessions: those of requests without a login are empty.
temporary() { find "$application" "$sessions" -name 'comedor-*' -o -name 'sess_*' -newer /tmp/started -not -empty; }
is_clean() { [ -z "$(temporary)" ]; }
nothing_remains() {
    # Another process removes it.
    soon is_clean || { temporary && return 1; }
    comedor setup --undo > /dev/null
    unchanged
    script_answers
}
calls=rename,renameat,renameat2,symlink,symlinkat,link,linkat,unlink,unlinkat,mkdir,mkdirat,fork,vfork,clone,clone3
lay_out
install_package
state > /tmp/before
step=0 status=137
while [ $status = 137 ]; do
    [ $step -lt 200 ]
    step=$((step + 1)) status=0
    touch /tmp/started
    strace -o /dev/null -e trace=$calls -e inject=$calls:signal=KILL:when=$step \
        comedor setup --yes --fastcgi http://school.example/entreaulas/ &> /tmp/output || status=$?
    nothing_remains
done
echo "killed $((step - 1)) times"
[ $status = 0 ] || { cat /tmp/output && exit 1; }
