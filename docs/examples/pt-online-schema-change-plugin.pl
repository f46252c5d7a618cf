# A plugin of pt-online-schema-change that asks Sluice after each chunk, for a schema change that writes around
# Sluice:
#
#   SLUICE_CHECK='http://127.0.0.1:9307/throttler/check?app=pt-online-schema-change' \
#     pt-online-schema-change --plugin pt-online-schema-change-plugin.pl --check-slave-lag h=replica1 \
#       --alter '…' --execute h=db1,D=shop,t=orders
#
# It takes the place of the tool's own look at its replicas, so the tool must know one: it finds them itself, or
# --check-slave-lag names any. (Version 3.2 cannot do either on MySQL 8.4 and later.) Anything but 200 is a lag that is too high, and so is no answer; the tool looks again
# after --check-interval, a second.
package pt_online_schema_change_plugin;

use strict;
use warnings;
use HTTP::Tiny;

sub new {
    my ($class, %arguments) = @_;
    my $url = $ENV{SLUICE_CHECK} or die "SLUICE_CHECK names no address to ask\n";
    my $http = HTTP::Tiny->new(timeout => 2, agent => 'pt-online-schema-change');
    return bless { url => $url, http => $http }, $class;
}

# Gives what says the lag of a replica, in seconds. The tool calls it for each of its replicas.
sub get_slave_lag {
    my ($self) = @_;
    return sub { return $self->may_go_on ? 0 : 999_999 };
}

sub may_go_on {
    my ($self) = @_;
    return $self->{http}->head($self->{url})->{status} == 200;
}

1;
