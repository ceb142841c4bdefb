package install

import "lockstep.run/lockstep/internal/cli/output"

// Outputs returns what the commands of this package print with -o json.
func Outputs() output.Shapes {
	return output.Shapes{"list": {[]installedPackage(nil)}}
}
