package figures

import "github.com/tidemark-im/tidemark/internal/bench"

// Names of figures.
const (
	message1M           = "message-1m"
	message1MDrain      = "message-1m-drain"
	messageLibrary      = "message-library"
	messageFanout       = "message-100k"
	messageFanoutDrain  = "message-100k-drain"
	messageCaughtUp     = "message-100k-caught-up"
	messageCaughtDrain  = "message-100k-caught-up-drain"
	countsBaseline      = "counts-cold"
	countsLoads         = "counts-cold-loads"
	dotLookup           = "dot"
	bytesState          = "bytes-per-state"
	gcResident          = "gc-resident"
	gcBaseline          = "gc-baseline"
	gcService           = "gc-service-time"
	gcResponse          = "gc-response-time"
	gcLibrary           = "gc-library-time"
	httpConstant        = "http-constant"
	httpPostgres        = "http-postgres"
	twoNodes            = "two-nodes"
	twoNodesStatements  = "two-nodes-statements"
	parallelRead        = "parallel-mark-read"
	parallelPost        = "parallel-post"
	flushRows           = "flush-rows"
	processStart        = "start"
	sseMemory           = "sse-memory"
	sseDeliveries       = "sse-deliveries"
	redisMessage        = "redis-message"
	redisCounts         = "redis-counts"
	redisRead           = "redis-mark-read"
	postgresMessage     = "postgres-message"
	postgresCountsTable = "postgres-counts"
	inboxBadge          = "inbox-badge"
	inboxBadgeRedis     = "inbox-badge-redis"
)

// Suite is everything there is to measure.
func Suite() *bench.Suite {
	return &bench.Suite{
		Catalogue: catalogue,
		Groups: []bench.Group{
			{Name: "hall", Fills: []string{message1M, message1MDrain}, Run: runHall},
			{Name: "lobby", Fills: []string{messageLibrary}, Run: runLobby},
			{Name: "fan-out", Fills: []string{
				messageFanout, messageFanoutDrain, messageCaughtUp, messageCaughtDrain,
			}, Run: runFanout},
			{Name: "crowd", Fills: []string{
				countsBaseline, countsLoads, dotLookup, bytesState, gcResident, gcBaseline,
				gcService, gcResponse, gcLibrary,
			}, Run: runCrowd},
			{Name: "office", Fills: []string{parallelRead, parallelPost}, Run: runOffice},
			{Name: "web", Fills: []string{httpConstant}, Run: runWeb},
			{Name: "streams", Fills: []string{sseMemory, sseDeliveries}, Run: runStreams},
			{Name: "start", Fills: []string{processStart}, Run: runStart},
			{Name: "flush", Fills: []string{flushRows}, Run: runFlush},
			{Name: "bell", Fills: []string{inboxBadge}, Run: runBell},
			{
				Name: "pair", Against: "postgres", Fills: []string{twoNodes, twoNodesStatements},
				Run: runPair,
			},
			{
				Name: "postgres", Against: "postgres",
				Fills: []string{httpPostgres, postgresMessage, postgresCountsTable}, Run: runPostgres,
			},
			{
				Name: "redis", Against: "redis",
				Fills: []string{redisMessage, redisCounts, redisRead}, Run: runRedis,
			},
			{
				Name: "bell beside redis", Against: "redis", Fills: []string{inboxBadgeRedis},
				Run: runRedisBell,
			},
		},
	}
}

func most(v float64) bench.Bound  { return bench.Bound{AtMost: v} }
func least(v float64) bench.Bound { return bench.Bound{AtLeast: v} }

var catalogue = []bench.Definition{
	{
		Name: inboxBadge, Bound: most(1.5), Held: "large by small inbox",
		Title: "A badge of an inbox that retains 1,000,000 items, all projected, against one of 10 " +
			"with as many senders.",
	},
	{
		Name: inboxBadgeRedis, Bound: most(1.5), Held: "large by small inbox",
		Title: "The same with a prepared summary in Redis.",
	},
	{
		Name: message1M, Bound: most(1.5), Held: "big by small channel",
		Title: "A message in a channel of 1,000,000 members, all of whom were caught up, against " +
			"a channel of 10: what it costs on the write path.",
	},
	{
		Name: message1MDrain, Bound: most(1), Held: "rows per step by the budget of a step",
		Title: "What such a message leaves to be done behind the writer, in steps of bounded size.",
	},
	{
		Name: messageLibrary, Bound: most(1.5), Held: "big by small channel",
		Title: "The same through the library: ids, policy, idempotence, a durable commit, memory. " +
			"At most 100,000 members.",
	},
	{
		Name: messageFanout, Bound: least(2000), Held: "fan-out by Tidemark",
		Title: "A message in a channel of 100,000 members whose last messages are not read yet, " +
			"against a counter for each member.",
	},
	{
		Name: messageFanoutDrain, Bound: least(200), Held: "fan-out by Tidemark",
		Title: "The same until nothing is left to be done.",
	},
	{
		Name: messageCaughtUp, Bound: least(2000), Held: "fan-out by Tidemark",
		Title: "A message in a channel of 100,000 members, all of whom had read everything and " +
			"asked for their dot since, which is the worst case.",
	},
	{
		Name: messageCaughtDrain, Bound: least(200), Held: "fan-out by Tidemark",
		Title: "The same until nothing is left to be done.",
	},
	{
		Name: countsBaseline, Bound: least(30), Held: "fan-out by Tidemark",
		Title: "200 counts of a member nobody asked about for long, in process.",
	},
	{
		Name: countsLoads, Bound: most(20), Held: "200 counts by one load",
		Title: "The same against one load from memory that must wait for the one before it.",
	},
	{
		Name: dotLookup, Bound: most(3), Held: "dot by lookup",
		Title: "hasUnread of a member with 200 scopes, all of them read, asked a second time, " +
			"against a lookup in a map of the same members.",
	},
	{
		Name: bytesState, Bound: most(48), Held: "bytes by read states",
		Title: "Memory of a read state, 10 % of them with a side record: everything included.",
	},
	{
		Name: gcResident, Bound: most(2), Held: "with read states by without",
		Title: "A forced full garbage collection with all read states resident, against the same " +
			"process before they were loaded.",
	},
	{
		Name: gcBaseline, Bound: least(500), Held: "fan-out by Tidemark",
		Title: "A forced full garbage collection, against that of the fan-out baseline with at " +
			"most 5 million counters.",
	},
	{
		Name: gcService, Bound: most(3), Held: "p99.9 with forced collections by without",
		Title: "Service time of an update while a garbage collection is forced every 300 ms.",
	},
	{
		Name: gcResponse, Bound: most(2), Held: "p99.9 with forced collections by idle loop without",
		Title: "Time from when an update was meant to start to its end, while a garbage collection " +
			"is forced every 300 ms, against a loop that does nothing.",
	},
	{
		Name: gcLibrary, Bound: most(3), Held: "p99.9 with forced collections by without",
		Title: "The same service time for a message through the library: ids, policy, idempotence, " +
			"a durable commit, memory.",
	},
	{
		Name: httpPostgres, Bound: least(100), Held: "PostgreSQL by Tidemark",
		Title: "200 counts over HTTP against COUNT(*) of PostgreSQL over its own wire.",
	},
	{
		Name: twoNodes, Bound: least(1.8), Held: "rate of two nodes by rate of one",
		Title: "Messages in workspaces spread over two nodes on one PostgreSQL, against one node.",
	},
	{
		Name: twoNodesStatements, Bound: most(1.05),
		Held:  "statements of two nodes by statements of one",
		Title: "Statements that such a message costs, leases included.",
	},
	{
		Name: httpConstant, Bound: least(0.65), Held: "rate of counts by rate of constants",
		Title: "200 counts over HTTP against a handler of the same server that writes as many " +
			"constant bytes.",
	},
	{
		Name: parallelRead, Bound: least(1.6), Held: "rate of two by rate of one",
		Title: "Mark-read over the library from two goroutines against one.",
	},
	{
		Name: parallelPost, Bound: least(1.6), Held: "rate of two by rate of one",
		Title: "Messages over the library from two goroutines against one.",
	},
	{
		Name: flushRows, Bound: most(2), Held: "rows flushed",
		Title: "Snapshot mode: rows that are flushed because of one message in a channel of 1,000.",
	},
	{
		Name: processStart, Bound: most(1.5), Held: "large by small database",
		Title: "From exec of the program to the first page of a member never seen before: " +
			"10 million read states in SQLite against 10 thousand.",
	},
	{
		Name: sseMemory, Bound: most(1.3), Held: "Tidemark by bare handler",
		Title: "Memory of an idle connection of server-sent events, against a bare net/http handler.",
	},
	{
		Name: sseDeliveries, Bound: least(0.7), Held: "rate of deliveries by rate of bare writes",
		Title: "A message delivered to 10,000 connections, against a loop that writes as many bytes.",
	},
	{Name: postgresMessage, Title: "A durable message, against PostgreSQL."},
	{Name: postgresCountsTable, Title: "200 counts of a member, against PostgreSQL."},
	{Name: redisMessage, Title: "A message in a channel, against Redis, where nothing is durable."},
	{Name: redisCounts, Title: "200 counts of a member, against Redis."},
	{Name: redisRead, Title: "A mark-read, against Redis, where nothing is durable."},
}
