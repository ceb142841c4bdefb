package limits

// Limits of offered versions.
const (
	RepositoryOffers      = 100_000   // versions of one repository, about 100 MiB of memory
	RepositoryVersions    = 1000      // versions of one repository entry
	RepositoryOfferBytes  = 128 << 20 // all versions of a repository as JSON, with YAML aliases expanded
	RepositoryProblems    = 100       // problems that the status of a repository lists
	AvailablePartBytes    = 512 << 10 // internal: one AvailablePackage as JSON: a third of etcd's limit
	AvailableVersionBytes = 256 << 10 // one version as JSON, with notes, schema and files
	AvailableDisplayBytes = 384 << 10 // description and icon of a package in a catalogue
	AvailableNameBytes    = 240       // name of a package, so that the names of all parts are valid
	NotCarriedOver        = 50        // internal: unsupported features listed for one version
	RevisionBytes         = 253       // a revision of a version
)

// Limits of version constraints.
const (
	ConstraintGroups = 32 // alternatives of one version constraint, each checked for every version
	ConstraintTerms  = 64 // comparisons in one version constraint; 100,000 versions then take up to 2 s
	NearestVersions  = 3  // internal: rejected versions that a message names
)
