package limits

// Shares of the manager's memory. The sum of live memory is three quarters of GOMEMLIMIT: a quarter
// and three eighths by this account, and an eighth for the engine itself and small work; garbage
// has the rest.
const (
	MemoryDefault        = 400 << 20 // if GOMEMLIMIT is not set: the value in config/manager
	MemoryWorkShare      = 4         // of GOMEMLIMIT, one of so many is for large work at a time
	MemoryHeldEighths    = 3         // of GOMEMLIMIT, for data that stays
	MemoryPackageShare   = 12        // of GOMEMLIMIT, for the files of one package: three times as much is live while it is loaded
	MemoryAllowanceShare = 256       // of GOMEMLIMIT, for each namespace regardless of the others: some hundred usual packages
	MemoryPerObject      = 500       // bytes of an object that is rolled out, in addition to its JSON
	MemoryPerField       = 8         // bytes of each field of it
	OwnObjectBytes       = 16 << 10  // of texts in one Package or repository that are not counted: 400 with all that an API server accepts have 6 MiB
)
