package version

import (
	"runtime/debug"
	"testing"

	"lockstep.run/lockstep/test/require"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"v0.2.0": true, "1.2.3": true, "v1.0.0-rc.1": true, "v1.0.0+fips": true,
		"": false, "unknown": false, "0123abc-dirty": false, "1234567": false, "v1.2": false,
		"v0.2.0-5-g0123abc": false, "v0.2.0-rc.1-5-g0123abc": false, "v0.2.0-5-g0123abc-dirty": false, "v0.2.0-dirty": false,
		"v0.0.0-20260102030405-0123456789ab": false, "v0.2.1-0.20260102030405-0123456789ab": false,
		"v0.2.1-rc.1.0.20260102030405-0123456789ab": false, "v0.2.1-0.20260102030405-0123456789ab+dirty": false, "v0.2.0+dirty": false,
	} {
		if got := Release(version); (got == version && got != "") != want || !want && got != "" {
			t.Errorf("%q: got %q", version, got)
		}
	}
}

func TestFromBuildInfo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"nothing recorded": {want: "unknown"},
		"installed by version": {
			info: debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			want: "v1.2.3",
		},
		"built at a commit": {
			info: debug.BuildInfo{
				Main:     debug.Module{Version: "(devel)"},
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
			},
			want: "abc",
		},
		"built with changes": {
			info: debug.BuildInfo{
				Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
			},
			want: "abc-dirty",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, fromBuildInfo(&tc.info))
		})
	}
}
