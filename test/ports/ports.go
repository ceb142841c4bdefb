// Package ports finds ports for processes that others start.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// These ports are above the sandboxes' ports and below the ephemeral ports, which the kernel uses
// for the near end of connections.
const (
	lowest = 30000
	number = 2700
)

// Free returns a free loopback address for a new process.
func Free() (address string, err error) {
	for range 100 {
		listener, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(number))) //nolint:gosec // no secret
		if listenErr == nil {
			return listener.Addr().String(), listener.Close()
		}
		err = listenErr
	}
	return "", fmt.Errorf("finding a free port from %d on: %w", lowest, err)
}
