package limits

// Limits of kickstart and import.
const (
	KickstartBytes   = 32 << 20 // all input of kickstart; the definitions of large operators have a few MiB
	HelmReleaseBytes = 32 << 20 // a Helm release as JSON, with its chart; decompressed, it could have a GiB
)

// Limits of package tests.
const (
	SchemaFileBytes = 8 << 20 // a JSON Schema in the folder of a package
)

// Limits of the catalogue commands.
const (
	VersionsNamed = 10 // internal: versions that an error names
)
