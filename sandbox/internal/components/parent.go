package components

import (
	"io"
	"os"
	"strconv"
	"syscall"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// WatchParent kills this process as soon as the pipe named by [program.ParentFDEnv] closes. The
// kernel closes it even if the supervisor was killed. It does nothing if the variable is unset, and
// returns at once.
func WatchParent() {
	fd, err := strconv.Atoi(os.Getenv(program.ParentFDEnv))
	if err != nil {
		return
	}
	os.Unsetenv(program.ParentFDEnv)
	syscall.CloseOnExec(fd)
	pipe := os.NewFile(uintptr(fd), "supervisor")
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		// The data is removed along with the supervisor, so a slow stop is pointless.
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
}
