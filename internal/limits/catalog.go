package limits

// Limits of what repositories offer.
const (
	RepositoryOffers      = 100_000   // versions of one repository: some 100 MiB of memory, and seconds to read
	RepositoryVersions    = 1000      // of one entry of a repository
	RepositoryOfferBytes  = 128 << 20 // of all of them as JSON, aliases of YAML expanded; RepositoryBytes bounds the input
	RepositorySchemaCost  = 2_000_000 // of all different config schemas: up to 10 µs each
	RepositoryProblems    = 100       // that are kept of one repository
	AvailablePartBytes    = 512 << 10 // of one AvailablePackage as JSON: a third of what etcd takes
	AvailableVersionBytes = 256 << 10 // of one version with notes, schema and files as JSON: half of a part
	AvailableDisplayBytes = 384 << 10 // of a package's description and icon, which are in part 0
	AvailableNameBytes    = 240       // of a package's name, so that the names of all parts are valid
	NotCarriedOver        = 50        // names that are kept of one version
	ConfigUncheckedBytes  = 512       // of why a schema cannot be used, which quotes it
	RevisionBytes         = 253       // of a revision; those in use have some ten
)

// Limits of the choice of versions.
const (
	ConstraintGroups = 32 // alternatives of one constraint on versions, each of which is checked for every version
	ConstraintTerms  = 64 // comparisons in all of them: 100,000 versions take a second or two at worst
	NearestVersions  = 3  // that a message about a choice names, of those that were not chosen
)
