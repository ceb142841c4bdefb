// Package ports finds ports for processes that others start.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are above those of sandboxes and below the ephemeral ones, of which the kernel takes the near end of any connection.
const (
	lowest = 30000
	number = 2700
)

// Free returns a loopback address on which nothing listens, for a process that is to.
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
