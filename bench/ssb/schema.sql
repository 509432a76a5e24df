CREATE TABLE customer (c_custkey int NOT NULL, c_name varchar(25) NOT NULL, c_address varchar(25) NOT NULL,
	c_city char(10) NOT NULL, c_nation varchar(15) NOT NULL, c_region varchar(12) NOT NULL, c_phone char(15) NOT NULL,
	c_mktsegment varchar(10) NOT NULL);
CREATE TABLE supplier (s_suppkey int NOT NULL, s_name varchar(25) NOT NULL, s_address varchar(25) NOT NULL,
	s_city char(10) NOT NULL, s_nation varchar(15) NOT NULL, s_region varchar(12) NOT NULL, s_phone char(15) NOT NULL);
CREATE TABLE part (p_partkey int NOT NULL, p_name varchar(22) NOT NULL, p_mfgr varchar(6) NOT NULL, p_category varchar(7) NOT NULL,
	p_brand1 varchar(9) NOT NULL, p_color varchar(11) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL,
	p_container varchar(10) NOT NULL);
CREATE TABLE date (d_datekey int NOT NULL, d_date varchar(18) NOT NULL, d_dayofweek varchar(9) NOT NULL, d_month varchar(9) NOT NULL,
	d_year int NOT NULL, d_yearmonthnum int NOT NULL, d_yearmonth char(7) NOT NULL, d_daynuminweek int NOT NULL,
	d_daynuminmonth int NOT NULL, d_daynuminyear int NOT NULL, d_monthnuminyear int NOT NULL, d_weeknuminyear int NOT NULL,
	d_sellingseason varchar(12) NOT NULL, d_lastdayinweekfl int NOT NULL, d_lastdayinmonthfl int NOT NULL,
	d_holidayfl int NOT NULL, d_weekdayfl int NOT NULL);
CREATE TABLE lineorder (lo_orderkey bigint NOT NULL, lo_linenumber int NOT NULL, lo_custkey int NOT NULL, lo_partkey int NOT NULL,
	lo_suppkey int NOT NULL, lo_orderdate int NOT NULL, lo_orderpriority varchar(15) NOT NULL, lo_shippriority int NOT NULL,
	lo_quantity int NOT NULL, lo_extendedprice int NOT NULL, lo_ordtotalprice int NOT NULL, lo_discount int NOT NULL,
	lo_revenue int NOT NULL, lo_supplycost int NOT NULL, lo_tax int NOT NULL, lo_commitdate int NOT NULL,
	lo_shipmode varchar(10) NOT NULL);
