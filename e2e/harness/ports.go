package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports of processes that tests start are above those of sandboxes and below the
// ephemeral ones, of which the kernel takes the near end of any connection.
const (
	lowestPort = 30000
	portRange  = 2700
)

// Address returns a loopback address on which nothing listens, for a process that is to.
func Address(tb testing.TB) string {
	tb.Helper()
	var failed error
	for range 100 {
		port := lowestPort + rand.IntN(portRange) //nolint:gosec // no secret
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			failed = err
			continue
		}
		defer listener.Close()
		return listener.Addr().String()
	}
	tb.Fatalf("no free port from %d on: %v", lowestPort, failed)
	return ""
}
