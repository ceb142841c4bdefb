package limits

import "time"

// Limits of availability probes. All but the times are counted: results do not depend on load.
const (
	Probes                 = 1000                   // of one revision; each object is evaluated by all probes of its kind
	ProbeCELBytes          = 16 << 10               // of one CEL rule: up to 1 µs per byte to compile
	ProbeCELCost           = 1_000_000              // of one evaluation in units of CEL, with the strings and lists that it builds: 10 to 100 ms
	ProbeCELTime           = 5 * time.Second        // for comparisons of large values, which are one step for CEL
	ProbeCost              = 10                     // of a probe beside what CEL and jq count
	ProbeObjectCost        = 5 * ProbeCELCost       // of all probes on one object: up to a second
	ProbesCost             = 200 * ProbeCELCost     // of all probes on all objects of a revision: 5 to 20 s; 50,000 objects with ten probes take a tenth
	ProbeBudget            = 100 * time.Millisecond // for probes in one reconcile; the rest is evaluated in the next one
	ProbeBudgetGrace       = 30 * time.Second       // for which statuses are not updated meanwhile
	ProbePatternSteps      = 10                     // of a regular expression, of up to 20 ns, in one unit of cost
	ProbeJQBytes           = 2 << 10                // of one jq expression
	ProbeJQSteps           = 100_000                // instructions of one jq evaluation: some 10 ms
	ProbeJQWork            = 1 << 20                // bytes of the values that one jq evaluation builds
	ProbeJQNumberBits      = 256                    // of integers in jq, which are of any length
	ProbeJQTime            = time.Second            // a safety net far above ProbeJQSteps
	ProbeMessageValueBytes = 128                    // of a value in a probe's message
)

// Limits of the fields that are learned from live objects to find drift.
const (
	ShapesPerKind = 2000 // lists and maps that are remembered per kind; the rest counts as unknown
	FieldsDepth   = 64   // of managedFields; types go to about 20
)

// Limits of the check against the schemas that the API server publishes.
const (
	SchemaDocumentBytes   = 32 << 20 // of one group version; large CRDs reach 10 MiB
	SchemaDocumentObjects = 800_000  // JSON objects of it: one in 40 bytes, as in apps/v1 without descriptions
	// JSON objects of one kind and all that it refers to, of 1 KiB each while they are
	// decoded: more than a CustomResourceDefinition can hold; the API server alone checks
	// a larger kind
	SchemaObjects       = 50_000
	SchemaNesting       = 200              // of lists and objects in a definition: 60 or so are in the deepest known ones
	SchemaSearchBytes   = 64 << 20         // that are decoded to find fields of a kind: half a second
	SchemaDocuments     = 12               // that are kept at once
	SchemaIdle          = 30 * time.Second // of schemas: longer than between two phases
	SchemaPublished     = 3 * time.Second  // until the schema of a new kind is published, at the latest
	SchemaFieldsTimeout = 5 * time.Second  // for the schema of one kind that a dependency needs fields of
	SchemaRounds        = 100              // of the search for unknown fields, of 50 µs; each finds one per map
	SchemaErrors        = 20               // fields that the error of one object names
)
