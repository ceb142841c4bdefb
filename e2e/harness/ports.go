package harness

import (
	"testing"

	"lockstep.run/lockstep/test/ports"
	"lockstep.run/lockstep/test/require"
)

// Address returns a loopback address on which nothing listens, for a process that is to.
func Address(tb testing.TB) string {
	tb.Helper()
	address, err := ports.Free()
	require.NoError(tb, err)
	return address
}
