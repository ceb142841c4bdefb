package manager

import (
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestWithoutFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"metadata":{"name":"a","managedFields":[{"manager":"]"}],"uid":"u"},"spec":{}}`: `{"metadata":{"name":"a","managedFields":null,"uid":"u"},"spec":{}}`,
		`{"metadata":{"name":"a"},"spec":{"managedFields":1}}`:                            `{"metadata":{"name":"a"},"spec":{"managedFields":1}}`,
		`{}`: `{}`,
	} {
		require.Equal(t, want, string(withoutFields(text)), text)
	}
}
