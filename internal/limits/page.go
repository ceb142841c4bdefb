package limits

import "time"

// Limits of the page that kubectl package ui serves.
const (
	PageBodyBytes     = 4 << 10                // of a form: a code, or the name of a package
	PageHeaderBytes   = 16 << 10               // of a request; browsers send one or two KiB
	PageReadTimeout   = 10 * time.Second       // of a request
	PageWriteTimeout  = 30 * time.Second       // of an answer, and of each piece of a stream
	PageWrongCodes    = 10                     // after which no code is accepted: it has 256 bits, so that more are an attack
	PageConnections   = 64                     // a browser opens six for a host
	PageStreams       = 12                     // two browsers' worth
	PageInterval      = 250 * time.Millisecond // between two pieces of a stream: what changes more often is not read
	PageObservers     = 16                     // packages that are watched with their revisions at a time, a stream each and those just left
	PageObserverIdle  = 30 * time.Second       // after which a package is watched no more that no page shows
	PageRows          = 100                    // of a list at a time
	PageObjects       = 100                    // of a phase: those that block first
	PageTextBytes     = 4 << 10                // of a text of the cluster, such as a message
	PageLineBytes     = 1 << 10                // of a name, a version or an image
	PageChanges       = 200                    // objects of a comparison, and fields of each
	PageNodes         = 80                     // of a drawing of dependencies: more are not read
	PagePlan          = 25 * time.Second       // of a plan, which dry runs each object: less than the answer may take
	PagePlans         = 2                      // at a time: each has the images of what it compares in memory
	PagePlanBytes     = 256 << 10              // of a plan as text
	PageDiagnosis     = 20 * time.Second       // of the search for a cause
	PageCatalogueTime = 20 * time.Second       // of a comparison with the catalogue
	PageCatalogueAge  = 30 * time.Second       // of one that is shown again
	PageOffers        = 20_000                 // packages that are offered: some 30 MiB, and seconds to read
	PageOffersIn      = 5_000                  // of one namespace; fewer where others need room
	PageOffersRead    = 20                     // AvailablePackages in one response: 10 MiB
	PageOfferBytes    = 160                    // of a text of an offer in a table: a row has a dozen
	PageOfferVersions = 50                     // of a package at a time
	PageOfferTerms    = 5                      // APIs, and dependencies, that are shown of one version
	PageOfferTime     = 20 * time.Second       // for the versions of one package: less than the answer may take
	PageOverview      = 20                     // rows of each table that a page of the catalogue shows the beginning of
)
