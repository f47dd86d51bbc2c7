// Package store makes records durable: in the key-value bucket
// [events.Bucket], with the run directories as second witness. It also keeps the
// feed, the stream [events.FeedStream].
//
// # Order of writes
//
// A spawn is in its run directory (spec.json) before its record is put; an end
// is there (result.json) before its record is put. So what a caller was told is
// always in two places, and one of them may be lost. A live record that names a
// process is in record.json as well, so that a child whose record is lost is
// adopted and not started twice.
//
// Both survive the end of any process at once. A power cut may take what the last
// syncs were before: with [WithDeferredSync] whoever owns the store calls
// [Store.Sync] as often as the server syncs the bucket.
//
// # Second writers
//
// Every put names the revision that it replaces. Another revision there is a
// second writer, [events.CodeStoreConflict], unless it is this store's own write
// whose answer was lost: that is recognized by its content and built upon.
//
// # Full disks
//
// Below a reserve a new record is refused with [events.CodeStorageFull]; what is
// accepted already may use the reserve up to a small rest, which the server
// needs. A stream that failed to write refuses everything until it is reopened:
// the first write after there is space again does that, see [Backend].
//
// # Loading
//
// [Store.Load] compares bucket and run directories both ways and restores what
// one of them lacks. A bucket that is missing beside run directories is
// [events.CodeStoreDamaged], never a new bucket.
//
// # Ownership
//
// The store has no goroutine. [Store.Load] is called once, before anything else;
// then calls for different ids may overlap, those for one id may not. Each call
// ends at its context, and a write at its deadline, syncs of
// the run directory aside.
package store
