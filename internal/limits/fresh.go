package limits

import "time"

// FreshRemembered is how long the answer to a write of one of our own kinds is
// remembered while the cache does not show it. A watch is milliseconds behind,
// after a broken connection some seconds.
const FreshRemembered = time.Minute
