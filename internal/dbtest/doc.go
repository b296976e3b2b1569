// Package dbtest gives tests databases on real servers.
//
// $TIDEMARK_TEST_POSTGRES and $TIDEMARK_TEST_MYSQL say where the servers are; scripts/services
// starts private ones and sets both. Each database is made for one test and dropped at its end. A
// test that asks for a server that is not there is skipped, and fails with CI=true: what is built
// for good is built with everything.
//
// A [Redis] is a server of the test's own, since tests of it kill it.
//
// Any database server of the kind will do, such as a TiDB for the second: its user has to be allowed to make
// databases.
package dbtest
