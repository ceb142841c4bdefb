package limits

import "time"

// Limits of image archives and folders. They bound memory by what a package
// may hold, and time by what may have to be read past to find it.
const (
	// ImageLayers is what container engines allow an image to have, plus one.
	ImageLayers = 128
	// LayerBytes is the compressed size of one layer. Package images are
	// kilobytes; the room is for images that carry a base system beside /package.
	LayerBytes = 256 << 20
	// ImageBytes is the compressed size of all layers of an image.
	ImageBytes = 512 << 20
	// UnpackedBytes is the decompressed size of all layers, with what lies
	// outside /package: a second or two of decompression.
	UnpackedBytes = 1 << 30
	// ArchiveEntries is how many entries all layers have together, with those
	// that are skipped. A base system has some ten thousand.
	ArchiveEntries = 100_000
	// PackageFiles is how many files a package has.
	PackageFiles = 20_000
	// PackageBytes is the size of all files of a package, which are in memory
	// together while it is loaded.
	PackageBytes = 64 << 20
	// FileBytes is the size of one file of a package.
	FileBytes = 16 << 20
	// PathBytes is the length of a path below /package. Paths go into messages.
	PathBytes = 512
	// PathDepth is how many segments a path below /package has.
	PathDepth = 32
	// ZstdWindowBytes bounds the decoder's memory; it is what zstd promises that
	// every decoder supports, times four.
	ZstdWindowBytes = 32 << 20
)

// Limits of registries.
const (
	// ReferenceBytes is the length of an image reference; host, path and tag of
	// the distribution specification stay below it.
	ReferenceBytes = 1024
	// ImageManifestBytes is what the distribution specification asks registries
	// to accept at least.
	ImageManifestBytes = 4 << 20
	// ResponseHeaderBytes bounds the header of one response.
	ResponseHeaderBytes = 256 << 10
	// Redirects is how many redirects one request follows, as browsers and curl
	// do or fewer.
	Redirects = 10
	// PullsPerHost is how many pulls talk to one registry at a time, so that a
	// registry that hangs holds up only its own packages.
	PullsPerHost = 4
	// PackagesUnderway is how many packages and deployments may be reconciled or wait
	// for that, for another package to be loaded: more than are reconciled at a time, so
	// that the API server stays busy. One that waits for something to happen does not
	// count.
	PackagesUnderway = 64
	// TurnMax is for how long a package waits for that at most: rollouts that hang hold
	// up no other package. TurnPeriod is how often it looks.
	TurnMax    = 2 * time.Second
	TurnPeriod = 5 * time.Millisecond
	// PullsInFlight is how many pulls there are at all. Waiting for a network
	// costs little; the number is high so that many registries that hang do not
	// hold up the others.
	PullsInFlight = 256
	// LoadsShort is how many packages are rendered at a time that take up to LoadShort,
	// as one of a thousand objects does. In addition one is that takes up to LoadMedium,
	// and one that takes up to LoadTime.
	LoadsShort = 2
	LoadShort  = 250 * time.Millisecond
	LoadMedium = 4 * time.Second
	// UnpacksInFlight is how many images are unpacked at a time. This is the part
	// of a pull that costs memory; it reads local files, so it cannot hang.
	UnpacksInFlight = 2
	// ConnectTimeout covers TCP and, apart from it, the TLS handshake.
	ConnectTimeout = 10 * time.Second
	// RegistryIdle is how long the connections of a pull wait for the next one:
	// shorter than what firewalls and load balancers forget them after.
	// RegistryConnectionAge is how long they are used at all, and
	// RegistryConnections of how many pulls they are kept: a few connections each.
	RegistryIdle          = 15 * time.Second
	RegistryConnectionAge = 5 * time.Minute
	RegistryConnections   = 32
	// ResponseHeaderTimeout is how long a registry may think.
	ResponseHeaderTimeout = 30 * time.Second
	// StallTimeout and StallBytes ask for so many bytes of a body in so much
	// time: 2 KiB/s. What is slower is a registry that hangs.
	StallTimeout = 30 * time.Second
	// StallBytes: see StallTimeout.
	StallBytes = 64 << 10
	// TagIntervalMin is the least time between two looks at the tag of a package;
	// registries limit requests.
	TagIntervalMin = time.Minute
	// PullTimeout covers one whole pull.
	PullTimeout = 5 * time.Minute
	// ImageCacheBytes is the default size of the image cache on disk.
	ImageCacheBytes = 1 << 30
	// RegistryErrorBytes is how much of a registry's own error text is shown.
	RegistryErrorBytes = 512
)

// Limits of YAML.
const (
	// ManifestBytes is the size of a manifest or lock file.
	ManifestBytes = 1 << 20
	// DocumentBytes is the size of one YAML document. The object in it is smaller
	// than ObjectBytes as JSON; indentation takes the rest.
	DocumentBytes = 4 << 20
	// DocumentMarks is how many structural characters (brackets, commas, line
	// ends and the indicators - ? :) one document has. Each may become a node
	// of about 200 bytes, so this bounds the memory of parsing before it begins.
	DocumentMarks = 300_000
	// DocumentNodes is how many values a document has once its aliases are
	// expanded.
	DocumentNodes = 300_000
	// DocumentTextBytes is the length of all scalars of a document once its
	// aliases are expanded.
	DocumentTextBytes = 8 << 20
	// DocumentDepth is how deep a document nests. Schemas of CRDs reach 50.
	DocumentDepth = 100
	// DocumentPathBytes is the length of the path of a field: all keys that lead to
	// it. The parser takes keys of up to 1,024 bytes, unless they begin with a "?".
	DocumentPathBytes = 4 << 10
	// DocumentDirectives is how many lines before a document begin with a percent
	// sign. The parser compares each with every other.
	DocumentDirectives = 100
	// DocumentsPerFile is how many documents a file has.
	DocumentsPerFile = 10_000
)

// Limits of a package's content.
const (
	// ObjectBytes is the JSON size of one object. etcd takes 1.5 MiB, and the
	// object's managed fields have to fit as well.
	ObjectBytes = 1400 << 10
	// AnnotationBytes is the API server's limit on all annotations of an object.
	AnnotationBytes = 256 << 10
	// PackageObjects is how many objects a package has.
	PackageObjects = 50_000
	// PackagePhases is how many phases a package has. Each phase costs at least one
	// round of probes, and a status entry that goes along with every status write.
	PackagePhases = 150
	// ConfigBytes is the JSON size of a Package's config, which is kept in an
	// annotation of the ObjectDeployment.
	ConfigBytes = 200 << 10
	// ConfigValues is how many values a configuration has with its defaults. A
	// default of an element counts for each element. Where all of them are wrong,
	// the validator compares each error with every other, in some seconds.
	ConfigValues = 10_000
	// ConfigMatchWork is the length of all texts of a configuration times the size
	// of the patterns that one of them is matched with: some seconds.
	ConfigMatchWork = 100_000_000
	// ConfigCheckWork is how many values a configuration, or the defaults of a schema,
	// have, times the schemas and values that one of them is compared with: some
	// seconds.
	ConfigCheckWork = 20_000_000
	// SchemaNodes is how many schemas a config schema has within it.
	SchemaNodes = 20_000
	// SchemaRules is how many rules it has; each is compiled, in about 1 ms.
	SchemaRules = 1000
	// SchemaRuleValues is how many values a list or map may have that a rule builds
	// out of ConfigValues: comparing two such takes about a second.
	SchemaRuleValues = 50_000_000
	// SchemaPatternWork is the size of the compiled patterns of a config schema,
	// in instructions: about a second.
	SchemaPatternWork = 500_000
	// LineBytes is the length of a text of one line that a catalogue shows.
	LineBytes = 253
	// ProseBytes is the length of a description or of release notes.
	ProseBytes = 64 << 10
	// IconBytes is the size of a package's icon, which catalogues keep in memory.
	IconBytes = 256 << 10
	// Patches is how many patches a Package has; the target of each is compared
	// with every object.
	Patches = 200
	// PatchBytes is the length of all of them.
	PatchBytes = 1 << 20
	// PatchOperations is how many JSON patch operations all of them have; inserting so
	// many into one list takes about 0.3 s.
	PatchOperations = 5000
	// PatchMergeWork is how many elements the lists of a patch have, times those of the
	// object that it is merged into: elements are looked for by their names, in about
	// 5 µs for each pair.
	PatchMergeWork = 250_000
	// Violations is how many problems of one package are reported. More do not
	// fit into a status and do not help.
	Violations = 1000
	// DetailBytes is the length of one problem's details.
	DetailBytes = 1 << 10
)

// Limits of templates and CEL expressions of a package.
const (
	// TemplateDepth is how deep templates and includes nest.
	TemplateDepth = 1000
	// TemplateNesting is how deep if, range, with, define and parentheses nest in
	// one file: each level is a level of recursion.
	TemplateNesting = 100
	// TemplateCodeBytes is the length of everything between {{ and }} in one
	// package. Two bytes of it may become a node of about 150.
	TemplateCodeBytes = 2 << 20
	// TemplateSteps is how many function calls, loop iterations and template
	// calls one package takes to render: a second or two.
	TemplateSteps = 1_000_000
	// TemplateValueBytes is the size of one value that a template makes; lists
	// and maps count 16 bytes for each element and key.
	TemplateValueBytes = 4 << 20
	// TemplateValueDepth is how deep such a value nests. It also ends a map that
	// was put into itself.
	TemplateValueDepth = 100
	// TemplateItems is how many elements until, untilStep, seq and the splitting
	// functions make at most.
	TemplateItems = 100_000
	// TemplateWorkBytes is the size of all values that the functions of one
	// package read and make: it bounds garbage and time.
	TemplateWorkBytes = 1 << 30
	// TemplatePatternBytes is the length of a regular expression, a glob or a
	// range of versions.
	TemplatePatternBytes = 4 << 10
	// TemplateMatchWork is the length of a text times the size of the program of
	// a regular expression that runs over it: about a second.
	TemplateMatchWork = 50_000_000
	// TemplateCompareBytes is the size of a list times the number of values that each
	// of its elements is compared with: about a second.
	TemplateCompareBytes = 1 << 30
	// TemplateVariables is how many variables one file of templates declares. Each
	// use of one goes through all that are declared before it.
	TemplateVariables = 5000
	// TemplatePadding is the greatest width or precision in a format.
	TemplatePadding = 9999
	// RenderTime bounds the rendering of one package.
	RenderTime = 20 * time.Second
	// ExpressionBytes is the length of a CEL expression.
	ExpressionBytes = 10 << 10
	// ExpressionCost is the CEL cost of evaluating one expression, about 0.1 s;
	// API servers use the same figure.
	ExpressionCost = 1_000_000
	// ExpressionsCost is the CEL cost of all expressions of a package: a second or
	// two.
	ExpressionsCost = 20_000_000
	// ExpressionsBytes is the length of all different expressions of a package;
	// each is compiled once, in about a microsecond a byte.
	ExpressionsBytes = 1 << 20
	// DifferentExpressions is how many of them there are; each is kept compiled, in
	// about 10 KiB.
	DifferentExpressions = 10_000
	// ExpressionNesting is how deep lists and maps nest in the text of an expression,
	// ExpressionMacros how many macros it has (map, exists and the like): checking
	// the types of both together takes about 0.1 s.
	ExpressionNesting = 32
	ExpressionMacros  = 32
	// ExpressionValues is how many values a list or map that an expression builds
	// holds, with all that is in them. Comparing two such takes milliseconds.
	ExpressionValues = 20_000
	// ExpressionWork is the same for all lists and maps that the expressions of a
	// package, or one evaluation of a probe, build: some 0.1 s.
	ExpressionWork = 2_000_000
	// Expressions is how many named conditions and path rules a manifest has.
	Expressions = 1000
	// LoadTime bounds the loading of one package as a whole. What is bounded by
	// count and size ends long before it.
	LoadTime = time.Minute
)

// Limits of values that came from Secrets.
const (
	// SensitiveLength is the length from which on a value is looked for where it
	// must not stand. Shorter ones are words that occur by chance.
	SensitiveLength = 8
	// SensitiveBytes is the length of all sensitive values of a Package. Each is
	// kept in about thirty forms while the package is loaded, of about 40 bytes for each
	// of its own.
	SensitiveBytes = 1 << 20
	// SensitiveWork is how many bytes are compared with values whose first bytes
	// are there: about a second.
	SensitiveWork = 1 << 30
)
