package limits

import "time"

// Limits of ObjectTemplates.
const (
	ObjectTemplateWorkers     = 8                     // that are reconciled at a time; each renders on its worker
	ObjectTemplateShare       = 4                     // of these that are of one namespace
	ObjectTemplateTime        = 2 * time.Second       // of one rendering, so that few templates cannot hold all workers for long
	ObjectTemplateBytes       = 3 << 19               // of what a template renders: the largest object that API servers store
	ObjectTemplateSources     = 100                   // of one template; each is a watch, up to SourceWatches
	ObjectTemplateItems       = 1000                  // of all sources of one template
	ObjectTemplateKeyBytes    = 2 << 10               // of a JSONPath; jq expressions have the limit of probes
	ObjectTemplateUnions      = 64                    // product of the lengths of all unions in a JSONPath, each of which multiplies the results
	ObjectTemplateValues      = 4 << 20               // bytes of all values of one template, as those of a package's templates
	ObjectTemplateSecretBytes = 1 << 10               // of values of Secrets that are looked for in names, which have 253 at most
	ObjectTemplateMessage     = 512                   // bytes of the message of a condition that its object reports, so that the status stays small
	ObjectTemplateReason      = 128                   // bytes of its reason
	ObjectTemplateConditions  = 20                    // of its object that it reports
	ObjectTemplateBurst       = 20                    // renderings in a row; templates that are sources of each other may never come to rest
	ObjectTemplateInterval    = 2 * time.Second       // between renderings after that
	ObjectTemplateRetry       = 5 * time.Second       // before it is looked up again whether an unavailable API is served, without a request
	ObjectTemplateStart       = 20 * time.Millisecond // the same at the start
	SourceWatches             = 50                    // of single sources of one namespace, a stream each; over that, one of the metadata of all objects of their kind there
	SourceReads               = 3                     // of the members of one such watch at a time
	SourcesStarting           = 4                     // sources with their content that are listed at a time: each is decoded in memory
	SourcesStart              = 5 * time.Second       // for which one counts as such: an API that does not answer delays no other
)
