package limits

import "time"

// Limits of image archives and folders: memory by the content of a package, time by what
// has to be skipped.
const (
	// ImageLayers is what container engines allow an image to have, plus one.
	ImageLayers = 128
	// LayerBytes is the compressed size of one layer, with room for a base system.
	LayerBytes = 256 << 20
	// ImageBytes is the compressed size of all layers of an image.
	ImageBytes = 512 << 20
	// UnpackedBytes is the decompressed size of all layers: a second or two.
	UnpackedBytes = 1 << 30
	// ArchiveEntries counts the entries of all layers. A base system has some ten thousand.
	ArchiveEntries = 100_000
	// PackageFiles is how many files a package has.
	PackageFiles = 20_000
	// PackageBytes is the size of all files of a package, which are in memory together.
	PackageBytes = 64 << 20
	// FileBytes is the size of one file of a package.
	FileBytes = 16 << 20
	// PathBytes is the length of a path below /package. Paths go into messages.
	PathBytes = 512
	// PathDepth is how many segments a path below /package has.
	PathDepth = 32
	// ZstdWindowBytes bounds the decoder's memory: four times what every decoder supports.
	ZstdWindowBytes = 32 << 20
)

// Limits of registries.
const (
	// ReferenceBytes is the length of an image reference.
	ReferenceBytes = 1024
	// ImageManifestBytes is what registries have to accept by the distribution specification.
	ImageManifestBytes = 4 << 20
	// ResponseHeaderBytes bounds the header of one response.
	ResponseHeaderBytes = 256 << 10
	// Redirects that one request follows.
	Redirects = 10
	// PullsPerHost bounds concurrent pulls from one registry, which may hang.
	PullsPerHost = 4
	// PullsInFlight bounds all concurrent pulls: high, so that hanging registries delay no other.
	PullsInFlight = 256
	// LoadsShort bounds concurrent loads of up to LoadShort, as for a thousand objects.
	// Besides, one may take up to LoadMedium and one up to LoadTime.
	LoadsShort = 2
	LoadShort  = 250 * time.Millisecond
	LoadMedium = 4 * time.Second
	// UnpacksInFlight bounds concurrent unpacking, which needs memory and cannot hang.
	UnpacksInFlight = 2
	// ConnectTimeout covers TCP and, apart from it, the TLS handshake.
	ConnectTimeout = 10 * time.Second
	// RegistryIdle is how long idle connections are kept, less than firewalls and load balancers do,
	// RegistryConnectionAge how long they are used, and RegistryConnections of how many pulls.
	RegistryIdle          = 15 * time.Second
	RegistryConnectionAge = 5 * time.Minute
	RegistryConnections   = 32
	// ResponseHeaderTimeout is how long a registry may think.
	ResponseHeaderTimeout = 30 * time.Second
	// StallTimeout and StallBytes require 2 KiB/s of a body.
	StallTimeout = 30 * time.Second
	// StallBytes: see StallTimeout.
	StallBytes = 64 << 10
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
	// DocumentBytes is the size of one YAML document: ObjectBytes and indentation.
	DocumentBytes = 4 << 20
	// DocumentMarks counts structural characters (brackets, commas, line ends, - ? :). Each
	// may become a node of 200 bytes, so this bounds memory before parsing.
	DocumentMarks = 300_000
	// DocumentNodes counts the values of a document with aliases expanded.
	DocumentNodes = 300_000
	// DocumentTextBytes is the length of all scalars with aliases expanded.
	DocumentTextBytes = 8 << 20
	// DocumentDepth is how deep a document nests. Schemas of CRDs reach 50.
	DocumentDepth = 100
	// DocumentPathBytes is the length of all keys that lead to a field.
	DocumentPathBytes = 4 << 10
	// DocumentDirectives counts directives; the parser compares each with every other.
	DocumentDirectives = 100
	// DocumentsPerFile is how many documents a file has.
	DocumentsPerFile = 10_000
)

// Limits of a package's content.
const (
	// ObjectBytes is the JSON size of one object: etcd's 1.5 MiB less managed fields.
	ObjectBytes = 1400 << 10
	// AnnotationBytes is the API server's limit on all annotations of an object.
	AnnotationBytes = 256 << 10
	// PackageObjects is how many objects a package has.
	PackageObjects = 50_000
	// PackagePhases bounds phases: each has a status entry in every status write.
	PackagePhases = 150
	// ConfigBytes is the JSON size of a config, which is kept in an annotation.
	ConfigBytes = 200 << 10
	// ConfigValues counts the values of a configuration with defaults, those of elements
	// once for each. The validator compares each error with every other: some seconds.
	ConfigValues = 10_000
	// ConfigMatchWork is text of a configuration times size of the patterns that match one:
	// some seconds.
	ConfigMatchWork = 100_000_000
	// ConfigCheckWork is values of a configuration or its defaults times the schemas and
	// values that one is compared with: some seconds.
	ConfigCheckWork = 20_000_000
	// SchemaNodes is how many schemas a config schema has within it.
	SchemaNodes = 20_000
	// SchemaRules is how many rules it has; each is compiled, in about 1 ms.
	SchemaRules = 1000
	// SchemaRuleValues is the size of a list or map that a rule builds: a second to compare two.
	SchemaRuleValues = 50_000_000
	// SchemaPatternWork counts instructions of all patterns of a config schema: about a second.
	SchemaPatternWork = 500_000
	// LineBytes is the length of a text of one line that a catalogue shows.
	LineBytes = 253
	// ProseBytes is the length of a description or of release notes.
	ProseBytes = 64 << 10
	// IconBytes is the size of a package's icon, which catalogues keep in memory.
	IconBytes = 256 << 10
	// Patches of a Package; the target of each is compared with every object.
	Patches = 200
	// PatchBytes is the length of all of them.
	PatchBytes = 1 << 20
	// PatchOperations counts all JSON patch operations: 0.3 s to insert so many into one list.
	PatchOperations = 5000
	// PatchMergeWork is list elements of a patch times those of the object: 5 µs for each pair.
	PatchMergeWork = 250_000
	// Violations that are reported for one package.
	Violations = 1000
	// DetailBytes is the length of one problem's details.
	DetailBytes = 1 << 10
)

// Limits of templates and CEL expressions of a package.
const (
	// TemplateDepth is how deep templates and includes nest.
	TemplateDepth = 1000
	// TemplateNesting bounds the nesting of blocks and parentheses, on which the parser recurses.
	TemplateNesting = 100
	// TemplateCodeBytes is the length of everything between {{ and }}. Two bytes may become
	// a node of 150.
	TemplateCodeBytes = 2 << 20
	// TemplateSteps counts function calls, loop iterations and template calls: a second or two.
	TemplateSteps = 1_000_000
	// TemplateValueBytes is the size of one value; each element and key counts 16 bytes.
	TemplateValueBytes = 4 << 20
	// TemplateValueDepth is how deep a value nests, also one that contains itself.
	TemplateValueDepth = 100
	// TemplateItems is how many elements until, untilStep, seq and split functions make.
	TemplateItems = 100_000
	// TemplateWorkBytes is the size of all values that the functions of a package read and make.
	TemplateWorkBytes = 1 << 30
	// TemplatePatternBytes is the length of a regular expression, a glob or a version range.
	TemplatePatternBytes = 4 << 10
	// TemplateMatchWork is length of a text times size of the program of a regular
	// expression: a second.
	TemplateMatchWork = 50_000_000
	// TemplateCompareBytes is size of a list times the values to compare each element with:
	// a second.
	TemplateCompareBytes = 1 << 30
	// TemplateVariables of one file; each use goes through all of them.
	TemplateVariables = 5000
	// TemplatePadding is the greatest width or precision in a format.
	TemplatePadding = 9999
	// RenderTime bounds the rendering of one package.
	RenderTime = 20 * time.Second
	// ExpressionBytes is the length of a CEL expression.
	ExpressionBytes = 10 << 10
	// ExpressionCost is the CEL cost of one evaluation, about 0.1 s, as in API servers.
	ExpressionCost = 1_000_000
	// ExpressionsCost is the CEL cost of all expressions of a package: a second or two.
	ExpressionsCost = 20_000_000
	// ExpressionsBytes is the length of all different expressions, compiled in 1 µs a byte.
	ExpressionsBytes = 1 << 20
	// DifferentExpressions is how many are kept compiled, in 10 KiB each.
	DifferentExpressions = 10_000
	// ExpressionNesting is how deep lists and maps nest in an expression, ExpressionMacros
	// how many macros it has: 0.1 s to check the types.
	ExpressionNesting = 32
	ExpressionMacros  = 32
	// ExpressionValues is the size of a list or map that an expression builds.
	ExpressionValues = 20_000
	// ExpressionWork is the same for all expressions of a package, or one probe: some 0.1 s.
	ExpressionWork = 2_000_000
	// Expressions is how many named conditions and path rules a manifest has.
	Expressions = 1000
	// LoadTime bounds loading a package. All other limits end it long before.
	LoadTime = time.Minute
)

// Limits of values that came from Secrets.
const (
	// SensitiveLength is the least length of values that are searched for.
	SensitiveLength = 8
	// SensitiveBytes is the length of all sensitive values of a Package, kept in 30 forms
	// of 40 times the size.
	SensitiveBytes = 1 << 20
	// SensitiveWork bounds the bytes that are compared with values: about a second.
	SensitiveWork = 1 << 30
)
