/* The floor: the cost of any CGI program. It reads the body if there is one, answers with SIZE bytes and
   exits before end-of-file as src/sys/kept_output.rs does, but not with the variable EXIT_LATE. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEXT(number) #number
#define LENGTH(size) TEXT(size)

static const char head[] = "Content-Type: application/json; charset=utf-8\r\n"
                           "Content-Length: " LENGTH(SIZE) "\r\n\r\n";
static char answer[sizeof head - 1 + SIZE];

int main(void) {
    static char body[65536];
    if (getenv("CONTENT_LENGTH"))
        while (read(0, body, sizeof body) > 0)
            ;
    memcpy(answer, head, sizeof head - 1);
    memset(answer + sizeof head - 1, ' ', SIZE);
    if (write(1, answer, sizeof answer) != sizeof answer)
        return 1;
    const char *server = getenv("SERVER_SOFTWARE"), *late = getenv("EXIT_LATE");
    if (server && strncmp(server, "Apache", 6) == 0 && !late) {
        struct pollfd parent = {(int)syscall(SYS_pidfd_open, getpid(), 0), POLLIN, 0};
        if (fork() == 0)
            poll(&parent, 1, -1);
    }
    return 0;
}
