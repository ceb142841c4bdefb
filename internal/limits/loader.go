package limits

import "time"

// Limits of image archives and folders: memory by the kept parts, time by the skipped ones.
const (
	ImageLayers     = 128       // what container engines allow an image to have, plus one
	LayerBytes      = 256 << 20 // of one layer, compressed, with room for a base system
	ImageBytes      = 512 << 20 // of all layers, compressed
	UnpackedBytes   = 1 << 30   // of all layers, decompressed: a second or two
	ArchiveEntries  = 100_000   // of all layers; a base system has some ten thousand
	PackageFiles    = 25_000    // of a package: one each for 20,000 objects, and others
	PackageBytes    = 64 << 20  // of all files of a package, which are in memory together
	FileBytes       = 16 << 20  // of one file of a package
	PathBytes       = 512       // of a path below /package, which goes into messages
	PathDepth       = 32        // segments of a path below /package
	ZstdWindowBytes = 32 << 20  // of the decoder's memory: four times what every decoder supports
)

// Limits of registries.
const (
	ReferenceBytes        = 1024              // of an image reference
	Tags                  = 50_000            // of a repository, to select one from
	RegistryEntries       = 50_000            // of a list that a registry sends: as many as Tags; descriptors take 136 bytes each
	ImageManifestBytes    = 4 << 20           // what registries have to accept by the distribution specification
	ResponseHeaderBytes   = 256 << 10         // of the header of one response
	Redirects             = 10                // that one request follows
	LoadsShort            = 2                 // concurrent loads of up to LoadShort
	LoadsLong             = 2                 // the same of any duration, one of a namespace
	LoadShort             = time.Second       // as for four thousand objects
	SmallPackageBytes     = 1 << 20           // of the files of a package, up to which it takes no share of the memory for large work
	LargePackageBytes     = 8 << 20           // of the files of a package, beyond which one is loaded at a time
	LoadWeight            = 3                 // bytes of live memory that a load takes for each byte of the files: these, the objects, and the input
	PullsInFlight         = 256               // concurrent sessions with registries: high, so that those that hang delay no other
	PullsOfNamespace      = PullsInFlight / 4 // of one namespace, over all registries
	UnpacksInFlight       = 2                 // concurrent unpacking, which needs memory and cannot hang
	ConnectTimeout        = 10 * time.Second  // of TCP and, apart from it, the TLS handshake
	ResponseHeaderTimeout = 30 * time.Second  // until the first byte of a response
	StallTimeout          = 30 * time.Second  // in which a body has to grow by StallBytes: 2 KiB/s
	StallBytes            = 64 << 10
	CertificateBytes      = 4 << 20 // of a file with certificate authorities; those of systems have 200 to 800 KiB
	RegistryErrorBytes    = 512     // of a registry's own error text
)

// Limits of YAML.
const (
	ManifestBytes      = 1 << 20 // of a manifest or lock file
	DocumentBytes      = 4 << 20 // of one YAML document: ObjectBytes and indentation
	DocumentMarks      = 300_000 // brackets, commas, line ends, - ? :, each of which may become a node of 200 bytes
	DocumentNodes      = 300_000 // values of a document with aliases expanded
	DocumentTextBytes  = 8 << 20 // of all scalars with aliases expanded
	DocumentDepth      = 100     // levels; schemas of CRDs reach 50
	DocumentPathBytes  = 4 << 10 // of all keys that lead to a field
	DocumentDirectives = 100     // of a document; the parser compares each with every other
	DocumentsPerFile   = 10_000  // of a file
)

// Limits of a package's content.
const (
	ObjectBytes       = 1400 << 10  // of one object as JSON: etcd's 1.5 MiB less managed fields
	AnnotationBytes   = 256 << 10   // the API server's limit on all annotations of an object
	PackageObjects    = 50_000      // of a package
	PackagePhases     = 150         // of a package; each has an entry in every status
	Dependencies      = 50          // of a package on packages and APIs; each has an entry in its status
	DependenciesBytes = 12 << 10    // of all of them as JSON: a third of a status, which repeats them
	FieldPaths        = 50          // of a dependency on an API
	IgnoredFields     = 32          // of an object: each is looked up in every event of it
	IgnoredEntries    = 100         // of a manifest or a Package, as of patches
	FieldPointerBytes = 512         // of a JSON pointer, which goes into an annotation and into messages
	FieldPointerDepth = 20          // parts of one; fields of pods are at 8
	PrereleaseNames   = 32          // identifiers of prereleases of a dependency, as of a Package
	ProvidedAPIs      = 2000        // of a package; the largest of cloud providers bring 1,000
	StatusImages      = 50          // images that the status of a Package has
	ConfigBytes       = 200 << 10   // of a config as JSON, which is kept in an annotation
	ConfigValues      = 10_000      // of a config with defaults, where the validator compares each error with every other: some seconds
	ConfigMatchWork   = 100_000_000 // text of a config times size of the patterns that match one: some seconds
	ConfigCheckWork   = 20_000_000  // values of a config or its defaults times the schemas and values to compare one with: some seconds
	SchemaNodes       = 20_000      // schemas within a config schema
	SchemaRules       = 1000        // of a config schema; each is compiled, in about 1 ms
	SchemaRuleValues  = 50_000_000  // of a list or map that a rule builds: a second to compare two
	SchemaDefaultWork = 200_000     // schemas that are compiled to check defaults, in 6 µs each: all within one that has a default, and a rule as 100
	SchemaPatternWork = 500_000     // instructions of all patterns of a config schema: about a second
	LineBytes         = 253         // of a text of one line that a catalogue shows
	DisplayItems      = 50          // keywords, links or owners of a package, of which a catalogue shows a line each
	ProseBytes        = 64 << 10    // of a description or of release notes
	IconBytes         = 256 << 10   // of a package's icon, which catalogues keep in memory
	Patches           = 200         // of a Package; the target of each is compared with every object
	PatchBytes        = 1 << 20     // of all of them
	PatchOperations   = 5000        // of all JSON patches: 0.3 s to insert so many into one list
	PatchMergeWork    = 250_000     // list elements of a patch times those of the object: 5 µs for each pair
	Violations        = 1000        // that are reported for one package
	DetailBytes       = 1 << 10     // of one problem's details
	PermissionRules   = 100         // that a manifest asks for in permissions
	PermissionRights  = 2000        // single rights in them, each of which is compared with each rule of the ceiling
)

// Limits of templates and CEL expressions of a package.
const (
	TemplateDepth        = 1000             // of templates and includes
	TemplateNesting      = 100              // of blocks and parentheses, on which the parser recurses
	TemplateCodeBytes    = 2 << 20          // between {{ and }}; two bytes may become a node of 150
	TemplateSteps        = 1_000_000        // function calls, iterations and template calls: a second or two
	TemplateValueBytes   = 4 << 20          // of one value; each element and key counts 16 bytes
	TemplateValueDepth   = 100              // of a value, also one that contains itself
	TemplateItems        = 100_000          // elements that until, untilStep, seq and split functions make
	TemplateWorkBytes    = 1 << 30          // of all values that the functions of a package read and make
	TemplatePatternBytes = 4 << 10          // of a regular expression, a glob or a version range
	TemplateMatchWork    = 50_000_000       // length of a text times size of a regular expression's program: a second
	TemplateCompareBytes = 1 << 30          // of a list times the values to compare each element with: a second
	TemplateVariables    = 5000             // of one file; each use goes through all of them
	TemplatePadding      = 9999             // width or precision in a format
	RenderTime           = 20 * time.Second // of one package
	ExpressionBytes      = 10 << 10         // of a CEL expression
	ExpressionCost       = 1_000_000        // of one evaluation in units of CEL, about 0.1 s, as in API servers
	ExpressionsCost      = 20_000_000       // of all expressions of a package: a second or two
	ExpressionsBytes     = 1 << 20          // of all different expressions, compiled in 1 µs a byte
	ExpressionNesting    = 32               // of lists and maps: 0.1 s to check the types
	ExpressionMacros     = 32               // of an expression, as costly
	ExpressionValues     = 20_000           // of a list or map that an expression builds
	ExpressionWork       = 2_000_000        // the same for all expressions of a package, or one probe: some 0.1 s
	Expressions          = 1000             // named conditions and path rules of a manifest
)

// Limits of values that came from Secrets.
const (
	SensitiveLength = 8       // of the shortest values that are searched for
	SensitiveBytes  = 1 << 20 // of all sensitive values of a Package, kept in 30 forms of 40 times the size
	SensitiveWork   = 1 << 30 // bytes that are compared with values: about a second
)

// Limits of signatures of images. Who can write to a registry chooses them.
const (
	Signatures         = 100       // of an image that are read, until one is good: some images have one for each of many attestations
	SignatureBytes     = 256 << 10 // of one, with its certificate and log entry: usually 10 KiB
	PublicKeyBytes     = 64 << 10  // of a public key in PEM
	RSABitsMin         = 2048      // of an RSA key; shorter ones can be broken
	RSABitsMax         = 8192      // of an RSA key; longer ones cost much time
	TrustedRootBytes   = 1 << 20   // of a trusted root; that of Sigstore has 10 KiB
	TrustedRootEntries = 64        // certificate authorities and logs of a trusted root, each of which is tried
	IdentityBytes      = 2 << 10   // of a subject or an issuer of a certificate, which messages quote
	ReferrerPages      = 20        // of the list of what refers to an image, each of up to ImageManifestBytes
)
