package limits

import "time"

// Limits of package images.
const (
	ImageLayers     = 128       // layers of an image, as container engines allow, plus one
	LayerBytes      = 256 << 20 // one compressed layer
	ImageBytes      = 512 << 20 // all compressed layers
	UnpackedBytes   = 1 << 30   // all decompressed layers, including files outside /package
	ArchiveEntries  = 100_000   // entries in all layers; a base system has about ten thousand
	PackageFiles    = 25_000    // files of a package
	PackageBytes    = 64 << 20  // all files of a package, which are in memory together
	FileBytes       = 16 << 20  // one file of a package
	PathBytes       = 512       // a path below /package
	PathDepth       = 32        // segments of a path below /package
	ZstdWindowBytes = 32 << 20  // internal: memory of the decoder: four times as much as every decoder supports
)

// Limits of registries.
const (
	ReferenceBytes        = 1024              // an image reference
	Tags                  = 50_000            // tags of a repository, to select one from
	RegistryEntries       = 50_000            // entries and fields of a list that a registry sends
	ImageManifestBytes    = 4 << 20           // an image manifest; the distribution specification requires as much
	ResponseHeaderBytes   = 256 << 10         // internal: the header of one response
	Redirects             = 10                // redirects of one request
	LoadsShort            = 2                 // internal: concurrent loads of up to LoadShort
	LoadsLong             = 2                 // internal: concurrent loads of any duration, one for each namespace
	LoadShort             = time.Second       // internal: a short load, such as four thousand objects
	SmallPackageBytes     = 1 << 20           // internal: files of a package that needs no share of the memory for large work
	LargePackageBytes     = 8 << 20           // internal: files of a package beyond which one is loaded at a time
	LoadWeight            = 3                 // internal: bytes of live memory for each byte of the files: these, the objects, and the input
	PullsInFlight         = 256               // internal: concurrent sessions with registries: many, so that hanging ones delay no other
	PullsOfNamespace      = PullsInFlight / 4 // internal: sessions of one namespace, with all registries
	UnpacksInFlight       = 2                 // internal: concurrent unpacking, which needs memory and cannot hang
	ConnectTimeout        = 10 * time.Second  // a TCP connection, and the TLS handshake
	ResponseHeaderTimeout = 30 * time.Second  // time until the first byte of a response
	StallTimeout          = 30 * time.Second  // time for a body to grow by StallBytes, 2 KiB/s
	StallBytes            = 64 << 10          // internal: see StallTimeout
	CertificateBytes      = 4 << 20           // a file with certificate authorities; a system's has 200 to 800 KiB
	RegistryErrorBytes    = 512               // internal: a registry's own error text
)

// Limits of YAML.
const (
	ManifestBytes      = 1 << 20 // a manifest or lock file
	DocumentBytes      = 4 << 20 // one YAML document
	DocumentMarks      = 300_000 // brackets, commas, line ends, - ? : in a document; each can become a node of 200 bytes
	DocumentNodes      = 300_000 // values of a document, with aliases expanded
	DocumentTextBytes  = 8 << 20 // text of a document, with aliases expanded
	DocumentDepth      = 100     // levels of a document; schemas of CRDs reach 50
	DocumentPathBytes  = 4 << 10 // all keys that lead to a field
	DocumentDirectives = 100     // directives of a document; the parser compares each with every other
	DocumentsPerFile   = 10_000  // documents of a file
)

// Limits of package contents.
const (
	ObjectBytes       = 1400 << 10  // one object as JSON: etcd's 1.5 MiB less managed fields
	AnnotationBytes   = 256 << 10   // annotations of an object; the API server has the same limit
	PackageObjects    = 50_000      // objects of a package
	PackagePhases     = 150         // phases of a package; each has an entry in every status
	Dependencies      = 50          // dependencies of a package on packages and APIs; each has an entry in its status
	DependenciesBytes = 12 << 10    // dependencies of a package as JSON, which the status repeats
	FieldPaths        = 50          // required fields of a dependency on an API
	IgnoredFields     = 32          // ignored fields of an object; every event looks up each
	IgnoredEntries    = 100         // ignored fields in a manifest or a Package
	FieldPointerBytes = 512         // a JSON pointer in an annotation
	FieldPointerDepth = 20          // parts of a JSON pointer; fields of pods have up to 8
	PrereleaseNames   = 32          // identifiers of prereleases in a dependency or a Package
	ProvidedAPIs      = 2000        // APIs that a package provides; cloud providers have 1,000
	StatusImages      = 50          // images in the status of a Package
	ConfigBytes       = 200 << 10   // config as JSON, which is kept in an annotation
	ConfigValues      = 10_000      // values of a config with defaults; the validator compares each error with every other
	ConfigMatchWork   = 100_000_000 // text of a config × size of the matching patterns, a few seconds
	ConfigCheckWork   = 20_000_000  // values of a config × schemas and values that each is compared with, a few seconds
	SchemaNodes       = 20_000      // schemas within a config schema
	SchemaRules       = 1000        // CEL rules of a config schema; each takes about 1 ms to compile
	SchemaRuleValues  = 50_000_000  // a list or map that a rule builds; comparing two takes a second
	SchemaDefaultWork = 200_000     // schemas compiled to check defaults, at 6 µs each; a rule counts as 100
	SchemaPatternWork = 500_000     // instructions of all patterns in a config schema, about a second
	LineBytes         = 253         // a line of text in a catalogue
	DisplayItems      = 50          // keywords, links or owners of a package
	ProseBytes        = 64 << 10    // a description, or release notes
	IconBytes         = 256 << 10   // icon of a package, which catalogues keep in memory
	Patches           = 200         // patches of a Package; each is compared with every object
	PatchBytes        = 1 << 20     // all patches of a Package
	PatchOperations   = 5000        // operations of all JSON patches; inserting that many into a list takes 0.3 s
	PatchMergeWork    = 250_000     // list elements of a patch × list elements of the object, at 5 µs for each pair
	Violations        = 1000        // problems reported for one package
	DetailBytes       = 1 << 10     // internal: details of one problem
	PermissionRules   = 100         // rules in permissions of a manifest
	PermissionRights  = 2000        // single rights in these rules, each compared with every rule of the ceiling
)

// Limits of templates and CEL expressions of a package.
const (
	TemplateDepth        = 1000             // nested template calls and includes
	TemplateNesting      = 100              // nested blocks and parentheses; the parser is recursive
	TemplateCodeBytes    = 2 << 20          // code between {{ and }}; two bytes can become a node of 150
	TemplateSteps        = 1_000_000        // function calls, iterations and template calls, 1 or 2 s
	TemplateValueBytes   = 4 << 20          // one value; each element and key counts as 16 bytes
	TemplateValueDepth   = 100              // levels of a value, even if it contains itself
	TemplateItems        = 100_000          // elements that until, untilStep, seq and split functions create
	TemplateWorkBytes    = 1 << 30          // all values that the functions of a package read and create
	TemplatePatternBytes = 4 << 10          // a regular expression, a glob or a version range
	TemplateMatchWork    = 50_000_000       // length of a text × size of a regular expression, a second
	TemplateCompareBytes = 1 << 30          // a list × values compared with each element, a second
	TemplateVariables    = 5000             // variables of one file
	TemplatePadding      = 9999             // width or precision in a format
	RenderTime           = 20 * time.Second // rendering of one package
	ExpressionBytes      = 10 << 10         // a CEL expression
	ExpressionCost       = 1_000_000        // one evaluation in units of CEL, about 0.1 s, as in API servers
	ExpressionsCost      = 20_000_000       // all expressions of a package, 1 or 2 s
	ExpressionsBytes     = 1 << 20          // all distinct expressions, at 1 µs a byte to compile
	ExpressionNesting    = 32               // nested lists and maps; checking the types takes 0.1 s
	ExpressionMacros     = 32               // macros in an expression, equally costly
	ExpressionValues     = 20_000           // a list or map that an expression builds
	ExpressionWork       = 2_000_000        // all lists and maps that the expressions of a package, or one probe, build
	Expressions          = 1000             // named conditions and path rules of a manifest
)

// Limits of values from Secrets.
const (
	SensitiveLength = 8       // length of the shortest values that are searched
	SensitiveBytes  = 1 << 20 // all sensitive values of a Package; their 30 search forms take 40 times as much
	SensitiveWork   = 1 << 30 // bytes compared with sensitive values, about a second
)

// Limits of image signatures. Anyone who can write to a registry can add signatures.
const (
	Signatures         = 100       // signatures of an image that are read until one is valid
	SignatureBytes     = 256 << 10 // one signature, with certificate and log entry; usually 10 KiB
	PublicKeyBytes     = 64 << 10  // a public key in PEM
	RSABitsMin         = 2048      // an RSA key; shorter ones are unsafe
	RSABitsMax         = 8192      // an RSA key; longer ones are slow
	TrustedRootBytes   = 1 << 20   // a trusted root; Sigstore's has 10 KiB
	TrustedRootEntries = 64        // certificate authorities and logs of a trusted root; each is tried
	IdentityBytes      = 2 << 10   // a subject or an issuer of a certificate
	ReferrerPages      = 20        // pages of the list of an image's referrers, at up to ImageManifestBytes
)
