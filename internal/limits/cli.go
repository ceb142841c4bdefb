package limits

import (
	"time"
)

// Limits of repositories of packages.
const (
	RepositoryVersions = 1000 // of one entry of a repository
	Repositories       = 100  // that one manifest names; each is a file or an image to read
)

// Limits of what a package is begun from.
const (
	KickstartBytes   = 32 << 20        // of all input; the definitions of large operators are a few MiB
	KickstartFiles   = 10_000          // of folders and patterns
	KickstartTimeout = time.Minute     // of one URL as a whole
	RenderTimeout    = 5 * time.Minute // of the user's own tools, which render a package that is imported
	RenderErrorBytes = 4 << 10         // that are shown of what such a tool says
)

// Limits of Helm's records, by which adopt finds objects.
const (
	HelmReleaseBytes = 32 << 20 // of a release as JSON, with its chart: a Secret of 1 MiB has it compressed, up to a GiB
)

// Limits of a package's own tests.
const (
	FixtureDiffBytes   = 4 << 20          // of two files whose difference is shown
	SchemaFileBytes    = 8 << 20          // of a JSON Schema out of a file or a URL
	SchemaDownloads    = 200              // URLs that are read for one package
	SchemaDownloadTime = 20 * time.Second // of one of them
)

// Limits of kubectl package install.
const (
	ScopeCheck = 5 * time.Second // of reading the image for its scopes
)

// Limits of asking an API server again for a kind that its discovery names and that it does not serve: the two are
// updated one after the other, on a busy machine within some seconds.
const (
	DiscoveryPause = 100 * time.Millisecond // before the second try, doubled with each further one
	DiscoveryTries = 8                      // 13 s in sum
)

// Limits of what kubectl package shows and writes of a catalogue.
const (
	AvailablePage         = 50        // AvailablePackages in one response, each of up to 512 KiB
	PackagePage           = 500       // Packages in one response: statuses of a few KiB each
	InlineRepositoryBytes = 900 << 10 // of files in a PackageRepository, which etcd takes up to 1.5 MiB of
	VersionsNamed         = 10        // in an error about versions
	ExampleDepth          = 32        // of objects in an example of values: each is indented
	SampleDepth           = 8         // of a value that an example makes up
	SampleLength          = 256       // of a text that it makes up
	SampleItems           = 16        // of a list that it makes up
	SimulatedCreates      = 500       // revisions that the simulation of one package makes: a rollout makes one
	ResourcesValidated    = 2500      // stored objects of a changed definition that a plan reads
	RefusedFieldBytes     = 256       // of what a definition refuses in a field
	SupportPage           = 50        // objects in one response to support: ObjectSets may have 1 MiB each
	SupportExplained      = 50        // packages that support explains, with some ten requests each
	SupportLogLines       = 20_000    // of each container's log, some 4 MiB
	ListDepth             = 4         // of lists within lists that are imported; kubectl makes one
)
