package version

import (
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Version of this build, such as v0.1.0. The linker sets it:
//
//	-ldflags "-X lockstep.run/lockstep/internal/kube/version.Version=v0.1.0"
var Version string

// Get returns Version, else the version of the module, else the commit (-dirty with local
// changes), else "unknown".
func Get() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fromBuildInfo(info)
}

func fromBuildInfo(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		// The module's own version has +dirty already.
		return v
	}

	var revision string
	var dirty bool
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.modified":
			dirty = setting.Value == "true"
		}
	}

	if revision == "" {
		return "unknown"
	}
	if dirty {
		return revision + "-dirty"
	}

	return revision
}

// development is the end of a version of a commit behind a release, as Go
// (v0.0.0-20260102030405-0123456789ab) and git describe (v0.2.0-5-g0123abc) make it, or of one with
// local changes.
var development = regexp.MustCompile(`(^|[.-])([0-9]{14}-[0-9a-f]{12}|[0-9]+-g[0-9a-f]+|dirty)$`)

// Release returns version if it belongs to a release or a release candidate, else "": a development
// build can have every feature of the release that follows.
func Release(version string) string {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil || v.Metadata() == "dirty" || development.MatchString(v.Prerelease()) {
		return ""
	}
	return version
}
