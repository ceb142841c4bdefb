package harness

import (
	"testing"

	"lockstep.run/lockstep/test/ports"
	"lockstep.run/lockstep/test/require"
)

// Address returns a free loopback address for a process to listen on.
func Address(tb testing.TB) string {
	tb.Helper()
	address, err := ports.Free()
	require.NoError(tb, err)
	return address
}
