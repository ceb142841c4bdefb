// Command words finds phrases that a native-speaking maintainer would not write, in comments, in
// texts that users see and in documentation. It prints a line for each of them with the words to
// write instead, and exits with code 1 if a file has more or fewer than allowed.txt admits: the
// list only shrinks.
//
//	go run ./hack/words            # check
//	go run ./hack/words -count     # phrases per 10,000 words of comments, strings and documentation
//	go run ./hack/words -list PATH # every phrase below PATH, allowed or not
package main
