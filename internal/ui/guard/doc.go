// Package guard decides which requests a page on a loopback address answers: those of one browser, which was given a code
// that the terminal knows.
//
//	request ─► Host ─► Sec-Fetch-Site, Origin ─► method, size ─► / or /enter ─► code ─► cookie
//	                                                          └► /<random>/…  ─► cookie ─► pages
//
// Refused requests, and the check that refuses each:
//
//   - the page of another site, whose name leads to 127.0.0.1 (DNS rebinding): Host has to be the address itself
//   - forms, scripts, frames and streams of other sites, and of other ports of this machine: Sec-Fetch-Site and Origin of
//     every request, reads too; frame-ancestors
//   - other users of the machine: they have neither the code nor the cookie. Cookies do not know ports, so this one has a
//     random path: a browser sends it to no other server
//   - markup in texts: html/template escapes it, and the Content-Security-Policy runs scripts of this server alone
//
// The code is in the fragment of the address, which browsers send to no server. It is exchanged once; wrong ones are counted.
package guard
