package settings

var streams = []Setting{
	{
		Name: "TIDEMARK_LIVE_HEARTBEAT", Kind: Duration,
		Does: "silence after which a stream sends a sign of life", Beyond: "",
		Why:   "clients are told it in seconds; proxies end connections that are silent for long",
		Limit: "tidemark_stream_heartbeat_seconds", Use: "tidemark_streams",
		least: ms(1_000), most: ms(600_000), field: func(v *Values) any { return &v.Live.Heartbeat },
	},
	{
		Name: "TIDEMARK_LIVE_WRITE_TIMEOUT", Kind: Duration,
		Does: "time that one frame may take to leave", Beyond: "the stream ends; the client resumes",
		Why:   "a client that does not read holds a connection and a goroutine",
		Limit: "tidemark_stream_write_seconds_limit", Over: "tidemark_streams_slow_total",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.Live.WriteTimeout },
	},
	{
		Name: "TIDEMARK_LIVE_RETRY", Kind: Duration,
		Does:   "pause before a stream asks again for values that could not be shown",
		Beyond: "", Why: "shorter ones keep asking what is still being loaded",
		Limit: "tidemark_stream_retry_seconds",
		least: ms(10), most: ms(60_000), field: func(v *Values) any { return &v.Live.Retry },
	},
	{
		Name: "TIDEMARK_LIVE_PAGE_ROWS", Kind: Count,
		Does: "scopes of one page of a stream's snapshot", Beyond: "further pages, the last one marked",
		Why:   "a page is one frame, held in memory as a whole",
		Limit: "tidemark_stream_page_rows_limit", Over: "tidemark_stream_snapshot_pages_total",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Live.PageRows },
	},
}

// overRate counts requests refused by whatever budget, by route.
const overRate = "tidemark_http_over_budget_total"

const (
	again  = "`over_budget` (429) with `Retry-After`"
	broken = "the connection ends"
)

var requests = []Setting{
	{
		Name: "TIDEMARK_HTTP_MEMBER_RATE", Kind: Rate,
		Does: "requests a second of one member token, in the long run", Beyond: again,
		Why:   "zero would lock everybody out",
		Limit: "tidemark_http_member_rate_limit", Over: overRate,
		least: 0.01, most: 1e6, field: func(v *Values) any { return &v.HTTP.MemberRate },
	},
	{
		Name: "TIDEMARK_HTTP_MEMBER_BURST", Kind: Count,
		Does: "requests of one member token at once", Beyond: again,
		Why:   "as above",
		Limit: "tidemark_http_member_burst_limit", Over: overRate,
		least: 1, most: 1e6, field: func(v *Values) any { return &v.HTTP.MemberBurst },
	},
	{
		Name: "TIDEMARK_HTTP_SERVICE_RATE", Kind: Rate,
		Does: "the same of one service or admin token", Beyond: again, Why: "as above",
		Limit: "tidemark_http_service_rate_limit", Over: overRate,
		least: 0.01, most: 1e6, field: func(v *Values) any { return &v.HTTP.ServiceRate },
	},
	{
		Name: "TIDEMARK_HTTP_SERVICE_BURST", Kind: Count,
		Does: "the same of one service or admin token at once", Beyond: again, Why: "as above",
		Limit: "tidemark_http_service_burst_limit", Over: overRate,
		least: 1, most: 1e6, field: func(v *Values) any { return &v.HTTP.ServiceBurst },
	},
	{
		Name: "TIDEMARK_HTTP_TOKEN_STREAMS", Kind: Count,
		Does: "streams that one token holds", Beyond: again,
		Why:   "each is a connection and a goroutine",
		Limit: "tidemark_http_token_streams_limit", Use: "tidemark_streams", Over: overRate,
		least: 1, most: 100_000, field: func(v *Values) any { return &v.HTTP.Streams },
	},
	{
		Name: "TIDEMARK_HTTP_MAX_TOKENS", Kind: Count,
		Does:   "tokens whose use is remembered",
		Beyond: "the one that was silent for longest begins anew, unless it has streams",
		Why:    "below it the rates above would hardly bind anybody",
		Limit:  "tidemark_http_tokens_limit", Use: "tidemark_http_tokens",
		Over:  "tidemark_http_tokens_forgotten_total",
		least: 100, most: 10_000_000, field: func(v *Values) any { return &v.HTTP.Tokens },
	},
	{
		Name: "TIDEMARK_HTTP_REQUEST_TIMEOUT", Kind: Duration,
		Does:   "time of a request that is no stream",
		Beyond: "`unavailable` (503): it may or may not have happened",
		Why:    "shorter than a commit on a slow disk it would refuse what succeeds",
		Limit:  "tidemark_http_request_seconds_limit", Over: "tidemark_http_requests_total",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.HTTP.RequestTimeout },
	},
	{
		Name: "TIDEMARK_HTTP_BODY_TIMEOUT", Kind: Duration,
		Does: "time in which a request's body arrives", Beyond: broken,
		Why:   "a slow sender holds a connection and a goroutine",
		Limit: "tidemark_http_body_seconds_limit",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.HTTP.BodyTimeout },
	},
	{
		Name: "TIDEMARK_HTTP_WRITE_TIMEOUT", Kind: Duration,
		Does: "time in which a client takes an answer", Beyond: broken, Why: "as above",
		Limit: "tidemark_http_write_seconds_limit",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.HTTP.WriteTimeout },
	},
	{
		Name: "TIDEMARK_HTTP_HEADER_TIMEOUT", Kind: Duration,
		Does: "time in which a request's head arrives", Beyond: broken, Why: "as above",
		Limit: "tidemark_http_header_seconds_limit",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.HTTP.HeaderTimeout },
	},
	{
		Name: "TIDEMARK_HTTP_IDLE_TIMEOUT", Kind: Duration,
		Does: "time that a connection is kept between two requests", Beyond: broken,
		Why:   "shorter than a load balancer's own it makes requests fail that should not",
		Limit: "tidemark_http_idle_seconds_limit",
		least: ms(1_000), most: ms(86_400_000), field: func(v *Values) any { return &v.HTTP.IdleTimeout },
	},
	{
		Name: "TIDEMARK_HTTP_MAX_HEADER_BYTES", Kind: Bytes,
		Does: "size of a request's head", Beyond: "431",
		Why:   "a stream of many members names them there: below 1 MiB long lists do not fit",
		Limit: "tidemark_http_header_bytes_limit",
		least: 16 << 10, most: 16 * mebi, field: func(v *Values) any { return &v.HTTP.HeaderBytes },
	},
}
