package version

import (
	"runtime/debug"
	"testing"
)

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
			if got := fromBuildInfo(&tc.info); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
