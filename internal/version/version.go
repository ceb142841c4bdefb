package version

import "runtime/debug"

// Version is the version of this build, such as v0.1.0. The linker sets it:
//
//	-ldflags "-X lockstep.run/lockstep/internal/version.Version=v0.1.0"
//
// It is empty in a build without that flag; Get is what to print.
var Version string

// Get returns Version or, where it is empty, what the build recorded: the
// version of the module, or else the commit, with -dirty where files differed
// from it. It returns "unknown" where the build recorded nothing.
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
