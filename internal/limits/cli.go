package limits

// Limits of what a package is begun from.
const (
	KickstartBytes   = 32 << 20 // of all input; the definitions of large operators are a few MiB
	HelmReleaseBytes = 32 << 20 // of a release of Helm as JSON, with its chart: a Secret of 1 MiB has it compressed, up to a GiB
)

// Limits of a package's own tests.
const (
	SchemaFileBytes = 8 << 20 // of a JSON Schema out of a file or a URL
	SchemaDownloads = 200     // URLs that are read for one package
)

// Limits of what kubectl package shows and writes of a catalogue.
const (
	InlineRepositoryBytes = 900 << 10 // of files in a PackageRepository, which etcd takes up to 1.5 MiB of
	VersionsNamed         = 10        // in an error about versions
)
