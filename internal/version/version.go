package version

import "runtime/debug"

// Version of this build, such as v0.1.0. The linker sets it:
//
//	-ldflags "-X lockstep.run/lockstep/internal/version.Version=v0.1.0"
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
